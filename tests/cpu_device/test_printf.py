"""What `printf` in kernels prints and returns, for formats that a GPU and C treat alike and for those that they do not.

The expected values are the answers of an H100 (driver 580).
"""

import re
import textwrap

import pytest

from helpers.programs import output

# (format, arguments, text, return value). In a text, … is a value that the call did not pass: undefined on a GPU.
# fmt: off
CASES = [
    # Flags, widths and precisions of integers.
    ("%d", "0", "0", 1),
    ("%.0d", "0", "", 1),
    ("%d", "-42", "-42", 1),
    ("%8.3d", "-42", "    -042", 1),
    ("%-8d", "-42", "-42     ", 1),
    ("%+d", "0", "+0", 1),
    ("% d", "0", " 0", 1),
    ("%08d", "-42", "-0000042", 1),
    ("%08.3d", "-42", "    -042", 1),
    ("%-08d", "-42", "-42     ", 1),
    ("%+ d", "0", "+0", 1),
    ("%+08d", "0", "+0000000", 1),
    ("% 08d", "-42", "-0000042", 1),
    ("%+-8d", "0", "+0      ", 1),
    ("%#d", "0", "0", 1),
    ("%i", "(-2147483647-1)", "-2147483648", 1),
    ("%u", "-42", "4294967254", 1),
    ("%o", "-42", "37777777726", 1),
    ("%#o", "0", "0", 1),
    ("%#o", "-42", "037777777726", 1),
    ("%#.3o", "0", "000", 1),
    ("%x", "-42", "ffffffd6", 1),
    ("%#x", "0", "0", 1),
    ("%#x", "-42", "0xffffffd6", 1),
    ("%#0x", "-42", "0xffffffd6", 1),
    ("%#08x", "0", "00000000", 1),
    ("%X", "-42", "FFFFFFD6", 1),
    ("%#X", "-42", "0XFFFFFFD6", 1),
    ("%#8.3X", "-42", "0XFFFFFFD6", 1),
    # Sizes that both sides know.
    ("%hd", "-42LL", "-42", 1),
    ("%hd", "0x123456789abcdefLL", "-12817", 1),
    ("%hd after %d", "0x1234567, 77", "17767 after 77", 2),
    ("%ld", "-42LL", "-42", 1),
    ("%8ld after %d", "-42LL, 77", "     -42 after 77", 2),
    ("%lld", "0x123456789abcdefLL", "81985529216486895", 1),
    ("%8lld after %d", "0x123456789abcdefLL, 77", "81985529216486895 after 77", 2),
    ("%hu", "-42LL", "65494", 1),
    ("%lx", "0x123456789abcdefLL", "123456789abcdef", 1),
    ("%llX", "-42LL", "FFFFFFFFFFFFFFD6", 1),
    ("%llo", "-42LL", "1777777777777777777726", 1),
    ("%lu", "-42LL", "18446744073709551574", 1),
    # The host knows `hh`, the device does not: the host reads on into the format.
    ("%hhd", "-42LL", "37", 0),
    ("%8hhd after %d", "-42LL, 77", "     -42 after 1751660581", 1),
    ("%hhd after %d", "0x1234567, 77", "103 after 1684564005", 1),
    ("%hhu", "-42LL", "37", 0),
    ("%8hhu after %d", "-42LL, 77", "     214 after 1751660581", 1),
    ("%hho", "-42LL", "45", 0),
    ("%hhx", "-42LL", "25", 0),
    ("%8hhX after %d", "0x123456789abcdefLL, 77", "      EF after 1751660581", 1),
    ("%hhc", "'A'", "%", 0),
    ("%hhe after %d", "2.5, 77", "0.000000e+00 after 1701341221", 1),
    ("%hhf after %d", "2.5, 77", "0.000000 after 1718118437", 1),
    ("%hhA after %d", "2.5, 77", "0X0P+0 after 1097361445", 1),
    # Sizes that the C library knows, but neither side does.
    ("%zd", "-42LL", "%zd", 0),
    ("%zu", "-42LL", "%zu", 0),
    ("%8zd after %d", "-42LL, 77", "4294967254 after …", 1),
    ("%8zu after %d", "0x123456789abcdefLL, 77", "2309737967 after …", 1),
    ("%zx after %d", "0x1234567, 77", "1234567 after …", 1),
    ("%td", "-42LL", "%td", 0),
    ("%8tx after %d", "-42LL, 77", "ffffffd6 after …", 1),
    ("%ju", "-42LL", "%ju", 0),
    ("%8jo after %d", "-42LL, 77", "37777777726 after …", 1),
    ("%Ld", "-42LL", "%Ld", 0),
    ("%I64d", "-42LL", "%I64d", 0),
    ("%I64d after %d", "0x1234567, 77", "                                                        19088743 after …", 1),
    ("%w32d", "-42LL", "%w32d", 0),
    ("%zs", '"text"', "%zs", 0),
    ("%ze after %d", "2.5, 77", "… after 0", 1),
    ("%Le after %d", "2.5, 77", "… after 0", 1),
    ("%lle after %d", "2.5, 77", "… after 77", 2),
    ("%llF after %d", "2.5, 77", "… after 77", 2),
    ("%LA after %d", "2.5, 77", "… after 0", 1),
    # Conversions that no side knows.
    ("%hhhd", "-42LL", "%hhhd", 0),
    ("%8hhhd after %d", "-42LL, 77", "%8hd after -42", 1),
    ("%8llld after %d", "-42LL, 77", "%8ld after -42", 1),
    ("%llld after %d", "0x1234567, 77", "%ld after 19088743", 1),
    ("%8hlx after %d", "-42LL, 77", "%8lx after -42", 1),
    ("%8I64d after %d", "-42LL, 77", "%8I64d after -42", 1),
    ("%I64u", "-42LL", "%I64u", 0),
    # Floating-point numbers.
    ("%e", "3.14159265358979", "3.141593e+00", 1),
    ("%E", "1e100", "1.000000E+100", 1),
    ("%f", "123456789.0", "123456789.000000", 1),
    ("%F", "CUDART_INF_D", "INF", 1),
    ("%g", "1e-5", "1e-05", 1),
    ("%G", "1e100", "1E+100", 1),
    ("%a", "5e-324", "0x0.0000000000001p-1022", 1),
    ("%A", "-1.5", "-0X1.8P+0", 1),
    ("%f", "-0.0", "-0.000000", 1),
    ("%e", "-CUDART_INF_D", "-inf", 1),
    ("%g", "CUDART_NAN_D", "nan", 1),
    ("%f", "-CUDART_NAN_D", "-nan", 1),
    ("%.0f", "-1.5", "-2", 1),
    ("%#.0f", "-1.5", "-2.", 1),
    ("%.f", "1e20", "100000000000000000000", 1),
    ("%012.3f", "-1.5", "-0000001.500", 1),
    ("%-12.3e", "-1.5", "-1.500e+00  ", 1),
    ("%+12.0g", "3.14159265358979", "          +3", 1),
    ("% 012f", "3.14159265358979", " 0003.141593", 1),
    ("%#g", "-1.5", "-1.50000", 1),
    ("%.20f", "3.14159265358979", "3.14159265358979000737", 1),
    ("%.60e", "1e-5", "1.000000000000000081803053914031309545862313825637102127075195e-05", 1),
    ("%.0a", "-1.5", "-0x2p+0", 1),
    ("%012a", "-1.5", "-0x0001.8p+0", 1),
    ("%012f", "CUDART_INF_D", "         inf", 1),
    ("%+012g", "CUDART_NAN_D", "        +nan", 1),
    ("%-012e", "CUDART_INF_D", "inf         ", 1),
    ("%lf after %d", "2.5, 77", "2.500000 after 77", 2),
    ("%he after %d", "2.5, 77", "2.500000e+00 after 77", 2),
    ("%g", "1.1f", "1.1", 1),
    # Characters, strings and pointers.
    ("%06c", "'A'", "     A", 1),
    ("%-6c", "'A'", "A     ", 1),
    ("%.12c", "'A'", "A", 1),
    ("%c after", "0", "\0 after", 1),
    ("%3c", "0", "  \0", 1),
    ("%c", "300", ",", 1),
    ("%lc", "'A'", "A", 1),
    ("%6.2s", '"text"', "    te", 1),
    ("%-06s", '"text"', "text  ", 1),
    ("%8.s", '"a longer text"', "        ", 1),
    ("%.12s", '"a longer text"', "a longer tex", 1),
    ("%5s", '""', "     ", 1),
    ("%s", "(const char*)0", "(null)", 1),
    ("%8s", "(const char*)0", "  (null)", 1),
    ("%.3s", "(const char*)0", "", 1),
    ("%hs", '"text"', "text", 1),
    ("%6p", "(void*)0x12345678", "0x12345678", 1),
    ("%+p", "(void*)0x12345678", "+0x12345678", 1),
    ("% 06p", "(void*)0x12345678", " 0x12345678", 1),
    ("%+-6p", "(void*)0x12345678", "+0x12345678", 1),
    ("%.12p", "(void*)0x12345678", "0x000012345678", 1),
    ("%-20p", "(void*)0x7f0000001000", "0x7f0000001000      ", 1),
    ("%020p", "(void*)0x7f0000001000", "0x0000007f0000001000", 1),
    ("%#20p", "(void*)0x7f0000001000", "      0x7f0000001000", 1),
    ("%p", "(void*)0", "(nil)", 1),
    ("%20p", "(void*)0", "               (nil)", 1),
    ("%lp", "(void*)0x1234", "0x1234", 1),
    # Widths from arguments.
    ("%*d after %d", "8, -42, 77", "     -42 after 77", 3),
    ("%-*d after %d", "8, -42, 77", "-42      after 77", 3),
    ("%0*d after %d", "8, -42, 77", "-0000042 after 77", 3),
    ("%0*d after %d", "-8, -42, 77", "-42      after 77", 3),
    ("%*d after %d", "0, -42, 77", "-42 after 77", 3),
    ("%*.3d after %d", "12, -42, 77", "        -042 after 77", 3),
    ("%*x after %d", "-8, 42, 77", "2a       after 77", 3),
    ("%0*g after %d", "8, 3.14159265358979, 77", "03.14159 after 77", 3),
    ("%*.3f after %d", "12, 3.14159265358979, 77", "       3.142 after 77", 3),
    ("%*.3a after %d", "12, 3.14159265358979, 77", "  0x1.922p+1 after 77", 3),
    ("%-*s after %d", '8, "text", 77', "text     after 77", 3),
    ("%*.3s after %d", '12, "text", 77', "         tex after 77", 3),
    ("%0*c after %d", "8, 'A', 77", "       A after 77", 3),
    ("%0*p after %d", "8, (void*)0x1234, 77", "0x001234 after 77", 3),
    # Precisions from arguments: both sides pass over the whole conversion, the C library does not.
    ("%.*d after %d", "12, -42, 77", "… after …", 1),
    ("%9.*x after %d", "-1, 42, 77", "… after …", 1),
    ("%.*f after %d", "2, 3.14159265358979, 77", "… after …", 1),
    ("%9.*g after %d", "0, 3.14159265358979, 77", "… after …", 1),
]
# fmt: on

PROGRAM = """
import sys
from helpers.device import Module, check, driver, synchronize
check(driver.cuInit(0))
context = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
module = Module.from_source(sys.argv[1])
module.launch("print", 1, 1)
synchronize()
"""
END = "\x1e"


def answers(cases):
    """(text, return value) of each case, from one kernel that prints them all."""
    calls = (f'r = printf("{case[0]}"{", " * bool(case[1])}{case[1]}); printf("|%d\\x1e", r);' for case in cases)
    kernel = """
    #define CUDART_INF_D __longlong_as_double(0x7ff0000000000000LL)
    #define CUDART_NAN_D __longlong_as_double(0x7ff8000000000000LL)
    extern "C" __global__ void print() { int r; %s }
    """
    # A GPU prints undefined values as they are, also as bytes that are not UTF-8.
    printed = output(PROGRAM, kernel % "\n".join(calls), errors="backslashreplace").split(END)
    assert printed.pop() == "" and len(printed) == len(cases), printed
    return [(text, int(count)) for text, _, count in (p.rpartition("|") for p in printed)]


def test_printf_prints_and_returns_what_a_gpu_does():
    differences = []
    for (format, arguments, expected, expected_count), (text, count) in zip(CASES, answers(CASES), strict=True):
        pattern = ".*".join(map(re.escape, expected.split("…")))
        if count != expected_count or not re.fullmatch(pattern, text, re.DOTALL):
            differences.append(
                f"printf({format!r}, {arguments}): {text!r}, {count}; not {expected!r}, {expected_count}"
            )
    assert not differences, "\n".join(differences)


@pytest.mark.cpu
def test_printf_prints_zero_for_values_that_were_not_passed():
    cases = [
        ("%.*d after %d", "5, -42, 77", "00000 after 0", 1),
        ("%.*f after %d", "2, 3.5, 77", "0.00 after 0", 1),
        ("%*.*d after %d", "4, 3, -42, 77", "     after 0", 1),
        ("%.*s after %d", '8, "text", 77', "(null) after 0", 1),
        ("%zs after %d", '"text", 77', "(null) after 0", 1),
        ("%n%zd|%d", "(void*)0, 7LL, 8", "0|0", 1),
        # A GPU's host reads more than was passed: an H100 printed other text in a second run.
        ("%8Li after %d", "-42LL, 77", "4294967254 after 0", 1),
        ("%8qd after %d", "-42LL, 77", "4294967254 after 0", 1),
        ("%ls", '"text"', "", 1),
        # Recorded but for the 0. They need glibc 2.38 on the host of a GPU.
        ("%8w32d after %d", "-42LL, 77", "     -42 after 0", 1),
        ("%8w64d after %d", "-42LL, 77", "4294967254 after 0", 1),
        ("%Lf|%d", "1.5, 7", "-nan|0", 1),
        ("%b|%d", "6, 7", "110|0", 1),
        ("%#010b|%d", "6, 7", "0b00000110|0", 1),
    ]
    assert answers(cases) == [(text, count) for _, _, text, count in cases]


@pytest.mark.cpu
def test_printf_without_arguments_for_its_format_is_an_error():
    program = textwrap.dedent(PROGRAM).replace("synchronize()\n", "print(driver.cuCtxSynchronize()[0].name)\n")
    text = output(program, 'extern "C" __global__ void print() { printf("value %d"); }')
    assert text == "CUDA_ERROR_ILLEGAL_ADDRESS\n"
