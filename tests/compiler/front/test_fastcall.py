"""The way into a compiled program from Python: the builtin and its double in Python alike."""

import ctypes
import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from tapegrad.base.reference_counts import expected_count
from tapegrad.compiler.front import fastcall as module
from tapegrad.compiler.front import fastcall_stub
from tapegrad.compiler.front.fastcall import Float, fastcall
from tapegrad.compiler.runtime.program import Program
from tapegrad.kernels import build
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.ops.core import Spec

pytestmark = pytest.mark.tapegrad_only("how compiled programs are called")

HEAD = f"define i64 @{build.SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch) {{"

# Every number doubled; a first number below zero fails guard 0, one above 100 raises.
TWICE = """
  %x = load ptr, ptr %inputs
  %y = load ptr, ptr %outputs
  %first = load double, ptr %x
  %below = fcmp olt double %first, 0.0
  br i1 %below, label %guard, label %above
above:
  %beyond = fcmp ogt double %first, 100.0
  br i1 %beyond, label %raised, label %loop
guard:
  ret i64 1
raised:
  ret i64 -1
loop:
  %k = phi i64 [ 0, %above ], [ %next, %loop ]
  %from = getelementptr double, ptr %x, i64 %k
  %to = getelementptr double, ptr %y, i64 %k
  %value = load double, ptr %from
  %double = fmul double %value, 2.0
  store double %double, ptr %to
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, <COUNT>
  br i1 %more, label %loop, label %end
end:
  ret i64 0
}"""

COPY = """
  %x = load ptr, ptr %inputs
  %y = load ptr, ptr %outputs
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 <BYTES>, i1 false)
  ret i64 0
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"""

# (a, b, c) to (the sum of their first numbers, c).
JOIN = """
  %b_at = getelementptr ptr, ptr %inputs, i64 1
  %c_at = getelementptr ptr, ptr %inputs, i64 2
  %y_at = getelementptr ptr, ptr %outputs, i64 1
  %a = load ptr, ptr %inputs
  %b = load ptr, ptr %b_at
  %c = load ptr, ptr %c_at
  %s = load ptr, ptr %outputs
  %y = load ptr, ptr %y_at
  %a0 = load double, ptr %a
  %b0 = load double, ptr %b
  %c0 = load <4 x double>, ptr %c, align 8
  %c00 = extractelement <4 x double> %c0, i64 0
  %ab = fadd double %a0, %b0
  %abc = fadd double %ab, %c00
  store double %abc, ptr %s
  store <4 x double> %c0, ptr %y, align 8
  ret i64 0
}"""

# One output: the address of the scratch; the input holds the address of a function to call.
SHOW_SCRATCH = """
  %y = load ptr, ptr %outputs
  %x = load ptr, ptr %inputs
  %function = load ptr, ptr %x
  %number = ptrtoint ptr %scratch to i64
  store i64 %number, ptr %y
  call void %function()
  ret i64 0
}"""

# Done when another thread has written something into the input, or else a failed guard.
WAIT = """
  %x = load ptr, ptr %inputs
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %again ]
  %value = load volatile i64, ptr %x
  %written = icmp ne i64 %value, 0
  br i1 %written, label %end, label %again
again:
  %next = add i64 %k, 1
  %late = icmp ugt i64 %next, 10000000000
  br i1 %late, label %end, label %loop
end:
  %status = phi i64 [ 0, %loop ], [ 1, %again ]
  ret i64 %status
}"""


def spec(*shape, dtype=np.float64):
    return Spec(shape, np.dtype(dtype))


def program(body, inputs, outputs, scratch=0):
    return Program(build.assemble(HEAD + body), tuple(inputs), tuple(outputs), scratch)


def twice(*shape, dtype=np.float64):
    body = TWICE.replace("<COUNT>", str(int(np.prod(shape))))
    return program(body, [spec(*shape, dtype=dtype)], [spec(*shape, dtype=dtype)])


def join():
    return program(JOIN, [spec(4)] * 3, [spec(), spec(4)])


def otherwise(*args, **kwargs):
    return "otherwise", args, kwargs


def failed():
    raise ArithmeticError("raised by a callback")


@pytest.fixture(params=["builtin", "plain"])
def make(request, monkeypatch):
    """The function `fastcall`, on an interpreter that it knows and on one that it does not know."""
    if request.param == "plain":
        monkeypatch.setattr(sweep_abi, "as_listed", lambda: False)

    def make(program, kinds, result, otherwise=otherwise, failed=failed, **texts):
        function = fastcall(program, kinds, result, otherwise, failed, **texts)
        assert (type(function) is type(len)) == (request.param == "builtin")
        return function

    return make


def test_this_interpreter_is_known():
    assert sweep_abi.as_listed()


def test_array_in_and_out(make):
    function = make(twice(2, 3), ("array",), 0)
    x = np.arange(6.0).reshape(2, 3)
    y = function(x)
    assert type(y) is np.ndarray
    assert y.dtype is np.dtype(np.float64)
    assert y.flags.owndata
    assert y.flags.c_contiguous
    assert y.flags.writeable
    np.testing.assert_array_equal(y, 2 * x)
    assert function(x) is not y


def test_float_in_and_out(make):
    function = make(twice(), ("float",), Float(0))
    assert function(1.5) == 3.0
    assert type(function(1.5)) is float


def test_array_of_no_dimensions(make):
    function = make(twice(), ("array",), 0)
    y = function(np.array(1.5))
    assert type(y) is np.ndarray
    assert y.shape == ()
    assert y == 3.0


def test_float_in_array_out(make):
    y = make(twice(), ("float",), 0)(2.0)
    assert type(y) is np.ndarray
    assert y == 4.0


def test_no_arguments_and_nothing_to_return(make):
    function = make(program("ret i64 0 }", [], []), (), None)
    assert function() is None
    assert function(1) == ("otherwise", (1,), {})


@pytest.mark.parametrize(
    "result",
    [
        (Float(0), 1),
        (1,),
        (),
        None,
        ((), (None, (1, Float(0))), None),
        (1, 1, (Float(0), Float(0))),
        ((((1,),),), (1, (None, None), (Float(0),)), Float(0)),
    ],
)
def test_structures(make, result):
    a, b, c = np.full(4, 1.0), np.full(4, 2.0), np.arange(4.0)

    def expected(part):
        if isinstance(part, tuple):
            return tuple(map(expected, part))
        return None if part is None else 3.0 if isinstance(part, Float) else c.tolist()

    def plain_lists(part):
        if isinstance(part, tuple):
            return tuple(map(plain_lists, part))
        return part.tolist() if isinstance(part, np.ndarray) else part

    got = make(join(), ("array",) * 3, result)(a, b, c)
    assert plain_lists(got) == expected(result)


def test_one_output_twice_is_one_array(make):
    x = np.arange(4.0)
    left, right = make(join(), ("array",) * 3, (1, 1))(x, x, x)
    assert left is right
    assert sys.getrefcount(left) == expected_count(variables=1, holders=1)  # the other variable


class Special(np.ndarray):
    pass


X = np.arange(4.0)
MISFITS = {
    "too few": (),
    "too many": (X, X),
    "shape": (X[:3].copy(),),
    "more dimensions": (X[None].copy(),),
    "fewer dimensions": (np.array(1.0),),
    "dtype": (X.astype(np.float32),),
    "same size": (X.astype(np.int64),),
    "byte order": (X.astype(X.dtype.newbyteorder("S")),),
    "steps": (np.arange(8.0)[::2],),
    "backwards": (X[::-1],),
    "unaligned": (np.zeros(33, np.uint8)[1:].view("f8"),),
    "subclass": (X.view(Special),),
    "list": ([0.0, 1.0, 2.0, 3.0],),
    "number": (1.0,),
    "none": (None,),
}


@pytest.mark.parametrize("args", MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_goes_elsewhere(make, args):
    word, got, kwargs = make(twice(4), ("array",), 0)(*args)
    assert word == "otherwise"
    assert len(got) == len(args)
    assert all(a is b for a, b in zip(got, args))
    assert kwargs == {}


@pytest.mark.parametrize("arg", [1, True, np.float64(1.0), np.array(1.0), "1.0", None, 1j])
def test_what_is_no_exact_float_goes_elsewhere(make, arg):
    assert make(twice(), ("float",), Float(0))(arg) == ("otherwise", (arg,), {})


def test_keywords_go_elsewhere(make):
    function = make(twice(4), ("array",), 0)
    assert function(x=X) == ("otherwise", (), {"x": X})
    assert function(X, y=1)[1:] == ((X,), {"y": 1})
    np.testing.assert_array_equal(function(X), 2 * X)


@pytest.mark.parametrize(
    "same",
    [
        pickle.loads(pickle.dumps(X)),
        X.astype(np.dtype("f8", copy=True)),
        np.lib.stride_tricks.as_strided(X, writeable=False),
        np.vstack([X, X])[1],
    ],
    ids=["pickled", "another dtype object", "read-only", "row"],
)
def test_what_is_the_same_in_another_way_fits(make, same):
    np.testing.assert_array_equal(make(twice(4), ("array",), 0)(same), 2 * X)


def test_failing_guard_goes_elsewhere(make):
    x = np.array([-1.0, 2.0])
    word, (got,), _ = make(twice(2), ("array",), 0)(x)
    assert word == "otherwise"
    assert got is x
    assert make(twice(), ("float",), Float(0))(-1.0) == ("otherwise", (-1.0,), {})


def test_stored_exception_is_raised(make):
    with pytest.raises(ArithmeticError, match="raised by a callback"):
        make(twice(2), ("array",), 0)(np.array([101.0, 0.0]))


def test_silent_failure_is_a_system_error(make):
    function = make(twice(), ("float",), Float(0), failed=lambda: None, name="half")
    with pytest.raises(SystemError, match=r"half.* without setting an exception"):
        function(101.0)


def test_exceptions_of_the_other_function_pass(make):
    def refuse(*args):
        raise KeyError("refused")

    with pytest.raises(KeyError, match="refused"):
        make(twice(), ("float",), Float(0), otherwise=refuse)(None)


def test_no_room_for_an_output(make):
    big = program("ret i64 0 }", [], [spec(4), spec(1 << 58)])
    with pytest.raises(MemoryError):
        make(big, (), (0, 1))()


@pytest.mark.parametrize(
    ("name", "shown"),
    [("f", "f"), ("<lambda>", "<lambda>"), ("grösse", "grösse"), ("a\0b", "a?b"), ("\ud800", "?")],
)
def test_names(name, shown):
    function = fastcall(twice(), ("float",), Float(0), otherwise, failed, name)
    assert function.__name__ == shown
    assert f"<built-in method {shown} of CompiledProgram" in repr(function)


def test_name_and_doc(make):
    function = make(twice(), ("float",), Float(0), name="f", doc="Twice as much.")
    assert function.__name__ == "f"
    assert function.__doc__ == "Twice as much."
    assert make(twice(), ("float",), Float(0)).__doc__ is None


def test_signature():
    doc = "f(x, by=2)\n--\n\nTwice as much."
    function = fastcall(twice(), ("float",), Float(0), otherwise, failed, "f", doc)
    assert function.__doc__ == "Twice as much."
    assert str(inspect.signature(function)) == "(x, by=2)"


def test_nothing_in_an_array(make):
    empty = program("ret i64 0 }", [spec(0, 3)], [spec(2, 0)])
    got = make(empty, ("array",), 0)(np.zeros((0, 3)))
    assert got.shape == (2, 0)


@pytest.mark.parametrize("dtype", ["f4", "c16", "i8", "u1", "?"])
def test_other_dtypes(make, dtype):
    x = np.array([3, 0, 1, 2]).astype(dtype)
    copy = COPY.replace("<BYTES>", str(x.nbytes))
    got = make(program(copy, [Spec((4,), x.dtype)], [Spec((4,), x.dtype)]), ("array",), 0)(x)
    assert got.dtype is x.dtype
    np.testing.assert_array_equal(got, x)


def test_needs_no_numba(tmp_path):
    code = (
        "import sys; from tapegrad.compiler.front import fastcall_stub as entry; entry.address();"
        "assert 'llvmlite' in sys.modules; assert 'numba' not in sys.modules"
    )
    environment = {**os.environ, "TAPEGRAD_CACHE_DIR": str(tmp_path)}
    for _ in ("compiled", "from the cache"):
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)


# --- references, memory, threads: of the builtin alone -----------------------------------------


@pytest.fixture
def steady():
    """Run a call many times; the number of blocks of memory must not grow."""

    def steady(call, times=1_000_000):
        for _ in range(100):
            call()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(times):
            call()
        gc.collect()
        assert abs(sys.getallocatedblocks() - before) < 100

    return steady


def test_a_million_calls_leave_nothing(steady):
    joined = fastcall(join(), ("array",) * 3, (Float(0), (1, None), ()), otherwise, failed)
    x = np.arange(4.0)
    results = joined(x, x, x)
    ours = sys.getrefcount(results), *(sys.getrefcount(r) for r in (*results[:2], *results[1][:1]))
    built = (float("3"), (np.array(1.0), None), ())
    theirs = sys.getrefcount(built), *(sys.getrefcount(r) for r in (*built[:2], *built[1][:1]))
    assert ours == theirs
    gc.collect()  # what earlier tests left holds both of these
    before = sys.getrefcount(x)
    others = np.array([sys.getrefcount(None), sys.getrefcount(x.dtype)])
    steady(lambda: joined(x, x, x))
    assert sys.getrefcount(x) == before
    moved = np.array([sys.getrefcount(None), sys.getrefcount(x.dtype)]) - others
    assert np.all(np.abs(moved) < 10_000)  # others use them too, a million times not


def test_other_ways_leave_nothing(steady):
    function = fastcall(twice(4), ("array",), 0, lambda *args, **kwargs: None, failed)
    x, below, beyond = np.arange(4.0), np.full(4, -1.0), np.full(4, 101.0)

    def raising():
        with pytest.raises(ArithmeticError):
            function(beyond)

    silent = fastcall(twice(4), ("array",), 0, otherwise, lambda: object())

    def failing():
        with pytest.raises(SystemError):
            silent(beyond)

    counts = [sys.getrefcount(a) for a in (x, below, beyond, function)]
    steady(lambda: (function(1.0), function(x, x=x), function(below)))
    steady(raising, 1000)
    steady(failing, 1000)
    assert [sys.getrefcount(a) for a in (x, below, beyond, function)] == counts


NULL = "define ptr @" + build.SYMBOL + "(i64 %a) { ret ptr null }"


@pytest.mark.parametrize("what", ["new_array", "new_float", "new_tuple"])
def test_no_memory_in_the_middle(what, steady):
    function = fastcall(join(), ("array",) * 3, ((1, Float(0)), (1, None)), otherwise, failed)
    frame = function.__self__.memory[0]
    setattr(frame, what, build.assemble(NULL))
    x = np.arange(4.0)

    def raising():
        with pytest.raises(SystemError):  # the real ones would set a MemoryError
            function(x, x, x)

    steady(raising, 1000)


def test_failure_after_some_tuples(steady):
    # The second tuple cannot be made: the first, which stands on the stack, has to go.
    function = fastcall(join(), ("array",) * 3, ((1, Float(0)), (None,) * 7), otherwise, failed)
    null_at_seven = f"""define ptr @{build.SYMBOL}(i64 %count) {{
      %is_seven = icmp eq i64 %count, 7
      br i1 %is_seven, label %none, label %some
    none:
      ret ptr null
    some:
      %function = inttoptr i64 <TUPLE> to ptr
      %tuple = call ptr %function(i64 %count)
      ret ptr %tuple
    }}"""
    frame = function.__self__.memory[0]
    frame.new_tuple = build.assemble(null_at_seven.replace("<TUPLE>", str(frame.new_tuple)))
    x = np.arange(4.0)

    def raising():
        with pytest.raises(SystemError):
            function(x, x, x)

    steady(raising, 1000)


def test_a_door_holds_what_it_needs_and_no_longer():
    class Kept:
        pass

    def build_one():
        kept = Kept()
        holder = twice(4)
        holder.kept = kept
        ring = []
        function = fastcall(holder, ("array",), 0, lambda *args: ring, failed)
        ring.append(function)  # a circle through the call
        return function, weakref.ref(kept)

    function, kept = build_one()
    gc.collect()
    np.testing.assert_array_equal(function(X), 2 * X)
    assert kept() is not None
    del function
    gc.collect()
    assert kept() is None


def test_fast_calls_cost_no_compiling(monkeypatch):
    fastcall(twice(), ("float",), Float(0), otherwise, failed)
    monkeypatch.setattr(build, "assemble", None)
    done = Program(fastcall_stub.address(), (spec(3),), (spec(5),), 0)
    fastcall(done, ("array",), 0, otherwise, failed)


# --- scratch and the interpreter's lock --------------------------------------------------------


@pytest.mark.parametrize("elements", [1, 200_000], ids=["locked", "released"])
def test_scratch_is_kept_and_never_shared(elements):
    holder = program(
        SHOW_SCRATCH,
        [spec(elements, dtype=np.int64)],
        [spec(dtype=np.int64)],
        module._OWN_SCRATCH + 1,
    )
    seen = []

    @ctypes.CFUNCTYPE(None)
    def callback():
        if not seen:
            seen.append(None)
            seen.append(int(function(x)))

    x = np.full(elements, ctypes.cast(callback, ctypes.c_void_p).value, np.int64)
    function = fastcall(holder, ("array",), 0, otherwise, failed)
    first = int(function(x))
    assert first != 0
    assert first % 64 == 0
    assert seen == [None, 0]
    assert int(function(x)) == first


def test_little_scratch_is_the_programs_own():
    nothing = ctypes.CFUNCTYPE(None)(lambda: None)
    holder = program(SHOW_SCRATCH, [spec(1, dtype=np.int64)], [spec(dtype=np.int64)], 4096)
    x = np.full(1, ctypes.cast(nothing, ctypes.c_void_p).value, np.int64)
    assert fastcall(holder, ("array",), 0, otherwise, failed)(x) == 0


def test_other_threads_run_beside_a_large_program():
    x = np.zeros(200_000, np.int64)
    function = fastcall(
        program(WAIT, [spec(x.size, dtype=np.int64)], []), ("array",), None, otherwise, failed
    )
    started = threading.Event()

    def write():
        started.wait()
        x[0] = 1

    thread = threading.Thread(target=write)
    thread.start()
    started.set()
    assert function(x) is None
    thread.join()


def test_many_threads_at_once(make):
    function = make(twice(1000), ("array",), 0)
    wrong = []

    def work(start):
        x = start + np.arange(1000.0)
        for _ in range(2000):
            if not np.array_equal(function(x), 2 * x):
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
