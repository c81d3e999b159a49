# The table of tests/kill_matrix.c, one line a kernel: on ordinary inputs the share of the cases in
# which it has an effect that each rule fails (fp32, then bf16; "-": no effect); the same share of
# the intervals of each generated suite; and the first generated case that fails it. Then, as
# comments, the closing figures. SPDX-License-Identifier: MIT
BEGIN { FS = OFS = "\t"; split("fp32 bf16", types, " ") }
NR == 1 { for (c = 5; c <= 13; c++) rule[c] = $c; next }
{
    correct = $1 ~ /^correct/
    type = $3 ~ /^bf16/ ? "bf16" : "fp32"
    ordinary = $2 == "ordinary"
    if (!($1 in seen)) { seen[$1] = ++n; name[n] = $1; is_correct[n] = correct }
    if (!ordinary && !($2 in known)) { known[$2] = 1; suite[++S] = $2 }
    if (!ordinary && !($3 in counted)) { counted[$3] = 1; cases++ }
    if (correct) for (c = 5; c <= 13; c++) if ($c != "-" && (ordinary || c == 5)) {
        asked[ordinary, c]++; alarms[ordinary, c] += $c
        if (ordinary && $c) alarmed[$3, c] = 1
    }
    if (ordinary && (correct || $4)) {
        of[$1, type]++
        for (c = 5; c <= 13; c++) { fails[$1, type, c] += $c; useful[$1, type, c] += $c && !(($3, c) in alarmed) }
    }
    if (!ordinary && (correct || $4)) {
        split($3, part, "-")
        unit = $1 " " part[1] "-" part[2]
        of[$1, $2]++
        if ($5 && !kills[$1, $2]++ && !($1 in first)) first[$1] = $3
        if (!correct && !(unit in met)) { met[unit] = 1; units[++total] = unit }
        if (!correct && $5) by[unit, $2] = 1
    }
}
END {
    printf "kernel"
    for (t = 1; t <= 2; t++) for (c = 5; c <= 13; c++) printf "\t%s %s", types[t], rule[c]
    for (s = 1; s <= S; s++) printf "\t%s", suite[s]
    print "\tfirst case that fails it"
    for (k = 1; k <= n; k++) {
        printf "%s", name[k]
        for (t = 1; t <= 2; t++) for (c = 5; c <= 13; c++)
            if (of[name[k], types[t]]) printf "\t%.2f", fails[name[k], types[t], c] / of[name[k], types[t]]
            else printf "\t-"
        for (s = 1; s <= S; s++)
            if (of[name[k], suite[s]]) printf "\t%.2f", kills[name[k], suite[s]] / of[name[k], suite[s]]
            else printf "\t-"
        print "\t" (name[k] in first ? first[name[k]] : "-")
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
    for (c = 5; c <= 13; c++) line = line sprintf("  %s %d/%d", rule[c], alarms[1, c], asked[1, c])
    print "# false alarms on correct kernels, ordinary inputs:" line
    print "# false alarms on correct kernels, " cases " generated cases: " alarms[0, 5] + 0 "/" asked[0, 5]
    for (k = 1; k <= n; k++) if (!is_correct[k]) {
        mutants++
        all += name[k] in first
        if (!(name[k] in first)) missed = missed " " name[k]
    }
    print "# the generated suites fail " all + 0 " of " mutants " mutants" (missed ? "; not" missed : "")
    for (k = 1; k <= total; k++) {
        u = units[k]; count = 0
        for (s = 1; s <= S; s++) if ((u, suite[s]) in by) { count++; alone[suite[s]]++; last = suite[s] }
        if (count == 0) quiet[++nquiet] = u
        if (count == 1) { only[last]++; names[last] = names[last] "; " u }
    }
    line = ""
    for (k = 1; k <= nquiet; k++) line = line "; " quiet[k]
    print "# of " total " (mutant, dtype-keys) with an effect " nquiet + 0 " fail nowhere" line
    for (s = 1; s <= S; s++)
        print "# " suite[s] ": fails " alone[suite[s]] + 0 " of them; without it " only[suite[s]] + 0 " are lost" names[suite[s]]
}
