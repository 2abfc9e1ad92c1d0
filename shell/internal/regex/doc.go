// Package regex matches the regular expressions that Unix tools take: POSIX basic and extended ones
// with GNU's additions, and Perl's.
//
//	re, err := regex.Compile(`\(a*\)b\1`, regex.Basic, regex.Options{})
//	match := re.Find("aabaa") // [0 5 0 2]
//
// An expression is translated to one of package regexp, which matches in linear time, whenever that
// can express it. Back-references, look-around and the like it cannot; those are matched by
// backtracking, with a limit on the work.
package regex
