# Groups the records on standard input by two fields, then walks the groups.
{ sum[$1 % 5003] += $2; count[$2 % 997]++; line[NR % 20000] = $0 }
END {
    for (pass = 0; pass < 3; pass++) for (key in sum) total += sum[key] * count[key % 997]
    for (i = 0; i < 20000; i += 3) bytes += length(line[i])
    print total, bytes
}
