# The table of tests/kill_matrix.c, one line a kernel: on ordinary inputs the share of the cases in
# which it has an effect that each rule fails (fp32, then bf16; "-": no effect), and by suite how
# many cases fail it in our judge, and the first. Then, as comments, the closing figures.
# SPDX-License-Identifier: MIT
BEGIN { FS = OFS = "\t"; split("fp32 bf16", types, " "); split("tiles fields extreme", suites, " ") }
NR == 1 { for (c = 5; c <= 13; c++) rule[c] = $c; next }
{
    correct = $1 ~ /^correct/
    type = $3 ~ /^bf16/ ? "bf16" : "fp32"
    if (!($1 in seen)) { seen[$1] = ++n; name[n] = $1; is_correct[n] = correct }
    if (correct) for (c = 5; c <= 13; c++) if ($c != "-") {
        asked[c]++; alarms[c] += $c
        if ($2 == "ordinary" && $c) alarmed[$3, c] = 1
    }
    if ($2 == "ordinary" && (correct || $4)) {
        of[$1, type]++
        for (c = 5; c <= 13; c++) { fails[$1, type, c] += $c; useful[$1, type, c] += $c && !(($3, c) in alarmed) }
    }
    if ($2 != "ordinary" && $5) { if (!kills[$1, $2]++) first[$1, $2] = $3 }
}
END {
    printf "kernel"
    for (t = 1; t <= 2; t++) for (c = 5; c <= 13; c++) printf "\t%s %s", types[t], rule[c]
    for (s = 1; s <= 3; s++) printf "\t%s\tfirst of %s", suites[s], suites[s]
    print ""
    for (k = 1; k <= n; k++) {
        printf "%s", name[k]
        for (t = 1; t <= 2; t++) for (c = 5; c <= 13; c++)
            if (of[name[k], types[t]]) printf "\t%.2f", fails[name[k], types[t], c] / of[name[k], types[t]]
            else printf "\t-"
        for (s = 1; s <= 3; s++)
            printf "\t%d\t%s", kills[name[k], suites[s]], (name[k], suites[s]) in first ? first[name[k], suites[s]] : "-"
        print ""
    }
    for (t = 1; t <= 2; t++) {
        line = ""; line2 = ""; m = 0
        for (k = 1; k <= n; k++) if (!is_correct[k] && name[k] != "no-maximum" && of[name[k], types[t]]) {
            m++
            for (c = 5; c <= 13; c++) {
                mean[t, c] += fails[name[k], types[t], c] / of[name[k], types[t]]
                clean[t, c] += useful[name[k], types[t], c] / of[name[k], types[t]]
            }
        }
        for (c = 5; c <= 13; c++) {
            line = line sprintf("  %s %.3f", rule[c], mean[t, c] / m)
            line2 = line2 sprintf("  %s %.3f", rule[c], clean[t, c] / m)
        }
        print "# ordinary " types[t] ", " m " mutants with an effect (no-maximum, legal there, not counted), failed:" line
        print "# ... and where the rule passes the correct kernels of the same case:" line2
    }
    line = ""
    for (c = 5; c <= 13; c++) line = line sprintf("  %s %d/%d", rule[c], alarms[c], asked[c])
    print "# false alarms on correct kernels:" line
    all = 0
    for (k = 1; k <= n; k++) if (!is_correct[k]) {
        mutants++; by = 0
        for (s = 1; s <= 3; s++) if (kills[name[k], suites[s]]) { by++; last = suites[s] }
        all += by > 0
        if (by == 1) { only[last]++; names[last] = names[last] " " name[k] }
        if (by == 0) missed = missed " " name[k]
    }
    print "# our suites fail " all " of " mutants " mutants" (missed ? "; not" missed : "")
    for (s = 1; s <= 3; s++) print "# without " suites[s] " " only[suites[s]] + 0 " are lost:" names[suites[s]]
}
