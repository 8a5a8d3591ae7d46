"""From Numba source to a callable address, compiling at most once per machine.

Numba compiles a function of 64-bit integers (addresses and counts) to LLVM IR; llvmlite turns it
into an object file, which goes to the disk cache.  Loading that object again needs neither Numba
nor a compiler, so a warm start costs a millisecond per kernel at most and does not import Numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import platform
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tapegrad.base.compile_stages import NotCompiled, stage
from tapegrad.base.locks import lock
from tapegrad.kernels import compile_ahead, simd_tables
from tapegrad.kernels import disk_cache as disk

_lock = lock()
_kept: list[Any] = []  # engines own their code: they live as long as the process
# Seconds of compiling in a burst before a notice is printed; idle seconds between bursts.
_NOTICE_AFTER = _BURST_GAP = 1.0
_burst_seconds = 0.0
_burst_end = 0.0  # of the last compilation
_LOOKS = 0.05  # seconds between two looks for what another process compiles
_next_look: dict[str, float] = {}  # when, by the key of the function
_announced_burst = False

# What machine code may call: LLVM turns loops into the first three, the rest is the C library's
# mathematics.  The engine does not find them by itself unless Numba happens to be loaded.
EXTERNALS = (
    "memset memcpy memmove "
    "sin cos tan asin acos atan atan2 sinh cosh tanh exp log log1p expm1 pow floor ceil fmod sqrt "
    "sinf cosf tanf asinf acosf atanf atan2f sinhf coshf tanhf expf logf log1pf expm1f powf floorf "
    "ceilf fmodf sqrtf"
).split()


# Constants lie within reach of the code, which then needs one instruction less for each. The
# compiler of modules in memory would expect them anywhere, and so would the rest of the code.
NEAR = sys.platform == "linux" and platform.machine() == "x86_64"
MODEL = {"codemodel": "small", "reloc": "pic"} if NEAR else {}
# Whether loops are vectorised that add up in order: the sums then stay scalar, to the bit.
SUMS_IN_ORDER = "--force-ordered-reductions"
# Whether a test that two arrays lie apart is done once for the loop around the one that needs it:
# where that loop goes backwards, such a test fails always, and nothing is vectorised.
TESTS_OUTSIDE = "--hoist-runtime-checks"
# Whether a loop with a branch that always goes the same way becomes two loops, at level 2 too.
BRANCHES_OUTSIDE = "--enable-nontrivial-unswitch"
# Whether the addresses of loops are computed as they stand there: in code that goes backwards the
# search for fewer sums in them takes a third to three quarters of the time of code generation.
ADDRESSES_AS_THEY_ARE = "--disable-lsr"
# What stands elsewhere is called through a table of addresses, here by what LLVM itself calls.
THROUGH_TABLE = """
!llvm.module.flags = !{!0}
!0 = !{i32 7, !"RtLibUseGOT", i32 1}
"""


@cache
def binding() -> Any:
    """`llvmlite.binding`, which frees nothing twice when an interruption comes in between.

    Its strings say that they were freed after that was done, and free themselves again then.
    """
    import llvmlite.binding as llvm
    from llvmlite.binding import ffi

    def close(self: Any) -> None:
        at, self._ptr = self._ptr, None
        if at is not None and self._owned:
            ffi.lib.LLVMPY_DisposeString(at)

    ffi.OutputString.close = close
    return llvm


def link_in(module: Any, other: Any) -> None:
    """Take one module over into another."""
    other._owned = True  # before that is so: nobody frees it, whatever comes in between
    module.link_in(other)


@cache  # what it looks up refers to it in a circle
def c_library() -> Any:
    """Where the functions of the C library and of its mathematics are looked up."""
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)


@cache
def _target() -> tuple[Any, dict[str, str]]:
    """What machine code is made for: this processor, which may call the `EXTERNALS`."""
    llvm = binding()

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    library = c_library()
    for name in EXTERNALS:
        llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    processor = {
        "cpu": llvm.get_host_cpu_name(),
        "features": llvm.get_host_cpu_features().flatten(),
    }
    return llvm.Target.from_default_triple(), processor


def machine(effort: int = 3) -> Any:
    """A target machine of one's own: an engine takes it over."""
    target, processor = _target()
    return target.create_target_machine(**processor, opt=effort, jit=True, **MODEL)


_machine = cache(machine)


@cache
def _host() -> bytes:
    """What decides the file of a module: the processor, Python, the compiler, how it is kept."""
    import llvmlite

    python = sys.implementation.cache_tag  # compiled code knows how its objects are laid out
    digest = hashlib.sha256(
        f"{python} {llvmlite.__version__} {sorted(MODEL.items())} {SUMS_IN_ORDER} "
        f"{disk.FORMAT}".encode()
    )
    _, processor = _target()
    digest.update(processor["cpu"].encode())
    digest.update(processor["features"].encode())
    return digest.digest()


@cache
def _fingerprint() -> bytes:
    """What, besides its source, decides a kernel's machine code."""
    from importlib import metadata

    digest = hashlib.sha256(_host() + metadata.version("numba").encode())
    here = Path(__file__).parent
    # What kernel source may use: a change there makes other kernels.
    package = here.parent
    folders = here, package / "native", package / "compiler" / "llvm"
    sources = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    constants = "tape/tape.py", "tape/record_format.py", "base/word_struct.py"
    for path in [*sources, *(package / name for name in constants)]:
        digest.update(path.read_bytes())
    return digest.digest()


Write = Callable[[str, str], str]  # the LLVM text of a function, given its source and its name


def load(name: str, source: str, arity: int, write: Write | None = None) -> int:
    """The address of the function `name` that `source` defines, over `arity` int64 arguments.

    The function returns an int64.  Its source is Python, which Numba compiles, or what `write`
    makes LLVM text of.
    """
    with _lock:
        key = _key(name, source, arity)
        code = disk.read(key)
        if code is None:
            with _announced(), stage("kernel"):
                if write is None:
                    code = _compile(name, source, arity)
                else:
                    text = simd_tables.vectorised(write(source, SYMBOL))
                    code = bytes(_machine().emit_object(_module(text, 3, "")))
            disk.write(key, code)
        return _link(code)


def load_or_ask(name: str, source: str, arity: int, write: Write | None = None) -> int:
    """`load`, for who can do without: raise NotCompiled where another process can compile it."""
    key = _key(name, source, arity)
    if time.monotonic() < _next_look.get(key, 0.0):
        raise NotCompiled(name)
    with _lock:
        code = disk.read(key)
        if code is not None:
            return _link(code)
    if compile_ahead.ask(name, source, arity):
        _next_look[key] = time.monotonic() + _LOOKS
        raise NotCompiled(name)
    return load(name, source, arity, write)


def is_compiled(name: str, source: str, arity: int, *, asking: bool = False) -> bool:
    """Whether `load` would find the function on disk.

    Where it would not, and `asking`, the function is compiled in the background.
    """
    found = disk.read(_key(name, source, arity)) is not None
    if asking and not found:
        compile_ahead.ask(name, source, arity)
    return found


@cache
def _key(name: str, source: str, arity: int) -> str:
    return hashlib.sha256(_fingerprint() + f"{name}/{arity}\n{source}".encode()).hexdigest()


def assemble(text: str) -> int:
    """The address of the function that LLVM text defines under the name `SYMBOL`, for good.

    It may call the `EXTERNALS`.  This needs no Numba.
    """
    engine = assembled(text)
    _kept.append(engine)
    return int(engine[0].get_function_address(SYMBOL))


def assemble_all(texts: dict[str, str]) -> dict[str, int]:
    """The addresses of functions that LLVM texts define, by their names, for good.

    It takes a fifth of the time that `assemble` takes for each of them.
    """
    with _lock:
        engine = _loaded(*[_machine_code(text) for text in texts.values()])
    _kept.append(engine)
    return {name: int(engine[0].get_function_address(name)) for name in texts}


def _link(code: bytes) -> int:
    engine = _loaded(code)
    _kept.append(engine)
    return int(engine[0].get_function_address(SYMBOL))


def _loaded(*codes: bytes) -> tuple[Any, Any]:
    """An engine that holds object files, and the target machine, which must live as long."""
    llvm = binding()

    _reserve(_BESIDE + 4 * sum(map(len, codes)))
    # An engine that owned the target machine would free it: each gets its own.  It compiles the
    # empty module that an engine begins with, into which no effort needs to go.
    own = machine(0)
    # llvmlite's own memory manager lays what belongs together side by side.
    side_by_side = True if NEAR else None
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), own, side_by_side)
    for code in codes:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, own


# Bytes that LLVM takes at most for a byte of text, by whether it optimises; and beside that.
_TAKEN, _BESIDE = (32, 256), 32 << 20


def _reserve(nbytes: int) -> None:
    """Raise MemoryError where so much cannot be had: LLVM, when it runs out, ends the process."""
    try:
        mmap.mmap(-1, nbytes).close()
    except OSError:
        text = f"compiled code may take {nbytes >> 20} MB, which are not there"
        raise MemoryError(text) from None


def assembled(
    text: str, level: int = 3, ready: str = "", backwards: bool = False, library: str = ""
) -> tuple[Any, Any]:
    """The engine of a module given as LLVM text, compiled at most once per machine.

    The first of the pair is the engine; the code lives as long as the pair.  At level 0 LLVM
    takes a tenth of the time, optimises nothing, and selects instructions one by one.  At level 1
    it optimises nothing either, but what is used again stays in registers.  `ready` is a module of
    code that needs no optimising, which the first one calls; `library` one that many modules call,
    which is compiled by itself, once.  `backwards` says that loops go backwards in the first.
    """
    with _lock:
        codes = [_machine_code(text, level, ready, backwards)]
        if library:
            codes.append(_library(library, level))
        return _loaded(*codes)


@cache
def _library(text: str, level: int) -> bytes:
    return _machine_code(text, level)


def is_assembled(text: str, level: int, ready: str) -> bool:
    """Whether `assembled` would find a module on disk."""
    return disk.read(_module_key(simd_tables.vectorised(text), level, ready)) is not None


def _module_key(text: str, level: int, ready: str, backwards: bool = False) -> str:
    options = f" backwards {ADDRESSES_AS_THEY_ARE} {BRANCHES_OUTSIDE}" * backwards
    what = f"{level}{options}\n{text}\n{ready}"
    return hashlib.sha256(_host() + what.encode()).hexdigest()


def _machine_code(text: str, level: int = 3, ready: str = "", backwards: bool = False) -> bytes:
    """The object file of a module given as LLVM text, from disk if it is there."""
    text = simd_tables.vectorised(text)
    key = _module_key(text, level, ready, backwards)
    code = disk.read(key)
    if code is None:
        taken = _TAKEN[level > 1] * len(text) + _TAKEN[True] * len(ready)
        _reserve(_BESIDE + taken)
        with _announced(), stage("machine code"):
            module = _module(text, level, ready, backwards)
            with _options((ADDRESSES_AS_THEY_ARE, backwards, False)):
                code = bytes(_machine(level).emit_object(module))
        disk.write(key, code)
    return code


def assembly(text: str, level: int = 3, ready: str = "") -> str:
    """The machine code of a module given as LLVM text, for people."""
    text = simd_tables.vectorised(text)
    return str(_machine(level).emit_assembly(_module(text, level, ready)))


def _module(text: str, level: int, ready: str, backwards: bool = False) -> Any:
    """A module as code is generated from it."""
    llvm = binding()

    module = llvm.parse_assembly(text)
    if level == 1:
        _settle(module)
    else:
        _optimise(module, level, backwards)
    if ready:
        other = llvm.parse_assembly(ready)
        _settle(other)
        link_in(module, other)
    _call_through_table(module)
    return module


SYMBOL = "tapegrad_kernel"


def _compile(name: str, source: str, arity: int) -> bytes:
    llvm = binding()

    from tapegrad.kernels.flags import entry_point
    from tapegrad.kernels.whole_program import together

    namespace: dict[str, Any] = {}
    _reserve(2 * _BESIDE)  # Numba compiles with LLVM too
    with together():
        exec(compile(source, f"<kernel {name}>", "exec"), namespace)
        native, text = entry_point(namespace[name], arity)
    _reserve(_BESIDE + _TAKEN[True] * len(text))
    module = llvm.parse_assembly(_interleaved(_widened(simd_tables.vectorised(text))))
    module.get_function(native).name = SYMBOL
    _close(module)
    _internalise(module)
    _optimise(module)
    _call_through_table(module)
    return bytes(_machine().emit_object(module))


_DEFINITION = re.compile(r"^(define [^\n]*?\))((?: [^\n]*)?) \{$", re.MULTILINE)


def _widened(text: str) -> str:
    """The same functions, asking for the widest vectors.

    LLVM takes half of AVX-512's width by default, since early processors slowed down at the whole.
    What does not fit into registers is stored where it happens to lie, unless a frame pointer lets
    it align the stack: across the end of a page that takes as long as all the rest of a loop.
    """
    return _DEFINITION.sub(r'\1\2 "prefer-vector-width"="512" "frame-pointer"="all" {', text)


_LABEL = re.compile(r"^B(\d+)(?:\.[a-z]{2,})*:")  # not those of inlined functions: they end in .i
_JUMP = re.compile(r"^  br label %B(\d+)$")
# How many vectors are computed side by side, by the fused multiplications and additions of one.
_SIDE_BY_SIDE = {25: 4, 6: 2}


def interleaved(work: int, tag: int) -> tuple[str, str]:
    """What ends the jump back of a loop over so many multiplications, and the metadata it names.

    A polynomial is a chain, and the processor does not look far enough ahead to begin the next one
    before it is through.  Only short loops are interleaved by LLVM itself.
    """
    vectors = next((v for least, v in _SIDE_BY_SIDE.items() if work >= least), None)
    if vectors is None:
        return "", ""
    return f", !llvm.loop !{tag}", (
        f"!{tag} = distinct !{{!{tag}, !{tag + 1}}}\n"
        f'!{tag + 1} = !{{!"llvm.loop.interleave.count", i32 {vectors}}}'
    )


_TAG = 1_000_000  # a number that no other metadata of a module has


def _interleaved(text: str) -> str:
    """The same functions, whose loops over polynomials compute several vectors side by side."""
    lines = text.split("\n")
    work: dict[int, int] = {}  # of each block, which Numba names by the place of its byte code
    jumps = []  # back to the beginning of a loop: the line, to where, from where
    block = 0
    for i, line in enumerate(lines):
        if found := _LABEL.match(line):
            block = int(found[1])
        elif "@llvm.fma." in line:
            work[block] = work.get(block, 0) + 1
        elif (found := _JUMP.match(line)) and int(found[1]) < block:
            jumps.append((i, int(found[1]), block))
    tags: list[str] = []
    for i, first, last in jumps:
        if any(first <= a and b <= last for j, a, b in jumps if j != i):
            continue  # not the innermost
        count = sum(work.get(b, 0) for b in range(first, last + 1))
        end, metadata = interleaved(count, _TAG + 2 * len(tags))
        if metadata:
            lines[i] += end
            tags.append(metadata)
    return "\n".join([*lines, *tags, ""])


@contextmanager
def _options(*chosen: tuple[str, bool, bool]) -> Iterator[None]:
    """Have options of LLVM for a time: what each is, and what it is outside.

    They are options of the process, so they are taken back for what others compile.
    """
    llvm = binding()

    for option, inside, _ in chosen:
        llvm.set_option("", f"{option}={str(inside).lower()}")
    try:
        yield
    finally:
        for option, _, outside in chosen:
            llvm.set_option("", f"{option}={str(outside).lower()}")


def _optimise(module: Any, level: int = 3, backwards: bool = False) -> None:
    """One pass over the whole kernel, which takes half the time of many over its parts."""
    llvm = binding()

    # Level 3 takes a tenth longer over code that goes backwards, of which only this is of use.
    speed = min(level, 2) if backwards else level
    options = llvm.create_pipeline_tuning_options(speed_level=speed)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(_machine(), options)
    # Without the first, one sum whose order counts keeps its whole loop scalar.
    chosen = (SUMS_IN_ORDER, True, False), (TESTS_OUTSIDE, not backwards, True)
    with _options(*chosen, (BRANCHES_OUTSIDE, backwards, False)):
        builder.getModulePassManager().run(module, builder)
    if _calls_forms_for_vectors(module):
        late = llvm.create_new_module_pass_manager()
        late.add_always_inliner_pass()  # the forms for vectors, which loops now call
        late.run(module, builder)


def _calls_forms_for_vectors(module: Any) -> bool:
    return any(simd_tables.has_form_for_vectors(function.name) for function in module.functions)


def _internalise(module: Any) -> None:
    """Have LLVM inline whatever is called once, unless loops look for its form for vectors."""
    if not _calls_forms_for_vectors(module):
        for function in module.functions:
            if not function.is_declaration and function.name != SYMBOL:
                function.linkage = "internal"


def _settle(module: Any) -> None:
    """What written code cannot do without: inlining what has to be, variables in registers."""
    llvm = binding()

    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    options = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(_machine(), options))


def _call_through_table(module: Any) -> None:
    """Let calls of what stands elsewhere go through a table of addresses."""
    llvm = binding()

    if NEAR:
        link_in(module, llvm.parse_assembly(THROUGH_TABLE))
        for function in module.functions:
            if function.is_declaration and not function.name.startswith("llvm."):
                function.add_function_attribute("nonlazybind")


def _close(module: Any) -> None:
    """Define what the module leaves open and will never reach.

    Numba's wrapper reports Python exceptions through the interpreter; a kernel raises none.  But a
    single symbol that the engine cannot resolve would leave all of them unresolved.
    """
    llvm = binding()

    open_functions = [f.name for f in module.functions if f.is_declaration]
    dead = [f for f in open_functions if not f.startswith("llvm.") and f not in EXTERNALS]
    for name in dead:
        if not name.startswith(("Py", "_Py", "NRT_", "numba_")):
            raise RuntimeError(f"a kernel calls `{name}`, which is not among the known externals")
    values = [g.name for g in module.global_variables if g.is_declaration]
    text = [f"define void @{name}() {{ unreachable }}" for name in dead]
    text += [f"@{name} = global ptr null" for name in values]
    link_in(module, llvm.parse_assembly("\n".join(text)))


@contextmanager
def _announced() -> Iterator[None]:
    """Print a notice when compilation takes more than a moment.

    A burst of compilations counts as one.
    """
    global _burst_seconds, _burst_end, _announced_burst
    started = time.perf_counter()
    if started - _burst_end > _BURST_GAP:
        _burst_seconds, _announced_burst = 0.0, False
    timer = None
    if not _announced_burst:
        timer = threading.Timer(_NOTICE_AFTER - _burst_seconds, _tell)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # no thread is started while the interpreter ends
            _tell()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        _burst_end = time.perf_counter()
        _burst_seconds += _burst_end - started


def _tell() -> None:
    global _announced_burst
    _announced_burst = True
    where = disk.folder()
    if sys.stderr is None or os.environ.get("TAPEGRAD_QUIET") == "1":
        return
    print(
        f"tapegrad: compiling for this machine, once, for some seconds; the code is kept in {where}"
        if where
        else "tapegrad: compiling for some seconds, in every process: no code is kept on disk",
        file=sys.stderr,
        flush=True,
    )
