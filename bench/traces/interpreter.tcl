# Sorts, joins and searches lists and arrays.
set state 1
proc next {most} {
    global state
    set state [expr {($state * 1103515245 + 12345) & 0x7fffffff}]
    return [expr {($state >> 8) % $most}]
}
for {set i 0} {$i < 30000} {incr i} {
    set name "key [next 9000]"
    lappend places($name) $i
    lappend all $name
}
set ranked [lsort -unique $all]
set sum 0
foreach name $ranked { incr sum [llength $places($name)] }
for {set i 0} {$i < 20000} {incr i} {
    set name "key [next 9000]"
    if {[info exists places($name)]} { incr sum [lindex $places($name) 0] }
}
puts "[llength $ranked] $sum"
