"""The error budget of dd_exp2 (ref/fast_double.h), and with --table its table (ref/fast_table.h).

Needs mpmath. Upper bounds of absolute errors before the product with the table's entry, where the
value is about 1. SPDX-License-Identifier: MIT"""
import sys
from mpmath import mp, mpf, log, factorial, floor

mp.prec = 400
eps = mpf(2) ** -53
MUL = 7  # eps^2, dd_mul


def double_word(x):
    h = mpf(float(x))
    return float(h).hex(), float(x - h).hex()


def table():
    names = (("at_ln2", log(2)), ("at_log2e", 1 / log(2)), ("at_6th", mpf(1) / 6),
             ("at_24th", mpf(1) / 24))
    print("/* Constants of ref/fast_double.h as double-words, each within 2^-106 of itself.")
    print(" * Printed by tests/peers/exp_budget.py --table. SPDX-License-Identifier: MIT */")
    print("#ifndef FAST_TABLE_H\n#define FAST_TABLE_H\n")
    print("struct dd;\n")
    for name, x in names:
        print("#define %s ((struct dd){%s, %s})" % ((name,) + double_word(x)))
    for part, name in enumerate(("at_root_h", "at_root_l")):
        print("\n/* 2^(i/128)%s */" % (", what is left" if part else ""))
        print("static const double %s[128] = {" % name)
        print(",\n".join("    " + double_word(mpf(2) ** (mpf(i) / 128))[part] for i in range(128)))
        print("};")
    print("\n#endif")


def budget():
    y = log(2) / 256 * (1 + mpf(2) ** -40)
    y_error = y * mpf("7.5") * eps**2  # dd_mul, and ln 2 rounded
    term = lambda k: 1 / factorial(k)
    q, error = term(9), eps * term(9)
    for k in (8, 7, 6, 5):  # y.h for y, the constant, the fma: eps each
        value = term(k) + y * q
        error = y * (error + q * eps) + eps * term(k) + eps * value * (1 + eps)
        q = value
    low = y * q
    error = y * (error + q * eps) + eps * (low + eps * term(4)) * (1 + eps) + eps**2 * term(4)
    value = term(4) + low
    parts = [("y^5 and on, in double", error * y**4)]
    for constant, exact in ((term(3), False), (mpf(1) / 2, True), (mpf(1), True), (mpf(1), True)):
        product = value * y
        error = error * y + value * y_error + MUL * eps**2 * product
        left = eps * product
        if exact:
            error += eps * (eps * (constant + product) + left)
        else:  # r.l + at_6th.l is rounded, and the constant
            error += eps * (left + eps * constant) + eps**2 * constant / 2
            error += eps * (eps * (constant + product) + left + eps * constant)
        value = constant + product
    cut = y**10 * term(10) * (1 + y)
    total = (error + cut) / (1 - y) + (MUL + 1) * eps**2  # the table's product, its entry
    parts += [("series, in double-words", error - parts[0][1]), ("cut after y^9", cut)]
    for name, x in parts:
        print("%-26s 2^%.2f" % (name, float(log(x, 2))))
    print("total 2^%.3f = %.1f eps^2" % (float(log(total, 2)), float(total / eps**2)))
    return total / eps**2


if __name__ == "__main__":
    if "--table" in sys.argv:
        table()
    elif budget() > 91:
        sys.exit("more than the 91 eps^2 that DD_EXP charges")
