"""What qbkit looks up in Envoy's program, in small programs with the same code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from qbkit.errors import StackNotReady
from qbkit.stacks.toolchains import envoy_wheel

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#define CLOCK(name) __asm__(#name ":" \
    "lea source(%rip), %rax; mov (%rax), %rax; test %rax, %rax; je 1f;" \
    "push %rbp; mov %rsp, %rbp; call *%rax; pop %rbp; sar %rax; ret;" \
    "1: rdtsc; ret")
__attribute__((used)) static void *source;
__attribute__((used))
const char flag[] = "\0FLAGS_envoy_quiche_reloadable_flag_quic_default_to_bbr";
void now(void);
CLOCKS
int main(int count, char **words)
{
    for (int i = 1; i < count; i++)
        if (!strcmp(words[i], "UNKNOWN")) return fputs("PARSE ERROR: UNKNOWN\n", stderr), 1;
    printf("%p\n", (void *)now);
}
"""
"""Prints the address of ``now``, which has the code of CycleClock::Now; has one of the flags."""


@pytest.fixture
def program(tmp_path: Path):
    """Compiles the program, with some cycle clocks and an argument that it does not know."""

    def compiled(clocks: str = "CLOCK(now);", unknown: str = "--none") -> Path:
        source = PROGRAM.replace("CLOCKS", clocks).replace("UNKNOWN", unknown)
        (tmp_path / "program.c").write_text(source)
        path = tmp_path / "program"
        subprocess.run(["gcc", "-no-pie", "-o", path, tmp_path / "program.c"], check=True)
        return path

    return compiled


def test_the_cycle_clock_is_found_by_its_code(program):
    path = program()
    said = subprocess.check_output([path], text=True)
    assert envoy_wheel.cycle_clock(path) == int(said, 16) > 0


@pytest.mark.parametrize(
    ("clocks", "number"),
    [('__asm__("now: rdtsc; ret");', 0), ("CLOCK(now); CLOCK(other);", 2)],
)
def test_no_cycle_clock_or_two_are_an_error(program, clocks, number):
    with pytest.raises(StackNotReady, match=f"holds {number} functions that look like CycleClock"):
        envoy_wheel.cycle_clock(program(clocks))


def test_a_flag_that_the_program_lacks(program):
    envoy_wheel.check(program(), "Envoy 1.2.3", ["quic_default_to_bbr"])
    with pytest.raises(StackNotReady, match=r"Envoy 1\.2\.3 has no flag quic_default_to_bbr_v2;"):
        envoy_wheel.check(
            program(), "Envoy 1.2.3", ["quic_default_to_bbr", "quic_default_to_bbr_v2"]
        )


def test_an_argument_that_the_program_lacks(program):
    with pytest.raises(StackNotReady, match=r"Envoy 1\.2\.3: PARSE ERROR: --disable-hot-restart"):
        envoy_wheel.check(program(unknown="--disable-hot-restart"), "Envoy 1.2.3", [])
