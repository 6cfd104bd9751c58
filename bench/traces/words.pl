# Counts words, and pairs of words, of the text on standard input.
my (%words, %pairs, $last);
while (<STDIN>) {
    for my $word (split) {
        $words{$word}++;
        $pairs{"$last $word"}++ if defined $last;
        $last = $word;
    }
}
my @ranked = sort { $pairs{$b} <=> $pairs{$a} || $a cmp $b } keys %pairs;
printf "%d %d %s\n", scalar keys %words, scalar @ranked, join(", ", @ranked[0 .. 9]);
