# Groups and joins an array of records.
(group_by(.a) | map({key: (.[0].a | tostring), value: (map(.b) | add)}) | from_entries) as $sums
| map(select(.b > 300) | .c + ($sums[.a | tostring] | tostring))
| unique | length
