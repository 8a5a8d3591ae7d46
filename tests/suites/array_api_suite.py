"""Run the public conformance suite of the Python array API standard on `tapegrad.array_api`.

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
    make array-api SUITE=array-api-tests

Nothing of the suite is stored here (made with its commit 55fcc601). `array_api_suite.txt` says what
fails, each with its reason; the run fails when another test does, and names those that pass.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")
EXAMPLES = 100  # of each test; always the same ones, so that the list is current or not


def main() -> int:
    """Run the suite; returns pytest's exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", type=Path, help="a checkout of array-api-tests, with submodules")
    parser.add_argument("--jobs", default="2")
    given = parser.parse_args()
    if not (given.suite / "array_api_tests").is_dir() or not list(given.suite.glob("array-api/*")):
        parser.error(f"{given.suite} is no checkout of array-api-tests with its submodule")
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "tapegrad.array_api",
        "ARRAY_API_TESTS_VERSION": "2024.12",
    }
    command = [
        sys.executable, "-m", "pytest", "array_api_tests", "--quiet", "-n", given.jobs,
        "-p", "no:cacheprovider", "-rX", "--xfails-file", str(LIST),
        "--derandomize", "--max-examples", str(EXAMPLES), "--disable-deadline",
    ]  # fmt: skip
    return subprocess.run(command, cwd=given.suite, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
