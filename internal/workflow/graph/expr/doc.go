// Package expr reads and evaluates the conditions of graphs: one expression over the state, such as
//
//	score >= 8 && category in ["bug", "idea"]
//
// It has no loops, no writes and, but for now_is_past, no clock. [Expr.Eval] is total: it returns a value for every state, within
// bounded time, and never fails.
//
// Literals are numbers, true, false, null, lists such as ["a", 1], and texts, as in YAML: "..." with the escapes of JSON, '...' without
// escapes, where two single quotes mean one. A word is a key of the state. What is missing is null: a key, a member, an element, and the members
// of null, so that a?.b means the same as a.b. A negative index counts from the end of a list; an index that is a text names a member.
//
// The operators, in the order of precedence, highest first. All but ?? and ?: group from the left, and comparisons do not chain.
//
//	a.b  a[i]  f(a)         members, elements, functions
//	a ?? b                  b if a is null
//	!a  -a
//	a * b  a / b  a % b     numbers
//	a + b  a - b            numbers; + also joins two texts
//	a == b  a != b          any values; numbers by value, so that 1 == 1.0
//	a < b  <=  >  >=        two numbers, or two texts by their bytes
//	a in b, b contains a    an element of a list, the name of a member, a part of a text
//	a matches b             a text and a regular expression (RE2), which may match anywhere in it
//	a && b
//	a || b
//	a ? b : c
//
// A comparison of different types is false, so a != b is true. What cannot be calculated is null: arithmetic with what is not a
// number, a division by zero, a function of a wrong type. Integers are exact as long as they fit 64 bits, and become floats beyond; a
// quotient that is a whole number is an integer; a remainder has the sign of a. The operators !, && and || take booleans. For
// others, null included, the result is null, unless one side decides alone, as in false && x and true || x.
package expr
