package lexer

import "unicode"

// The digits of numbers.
const (
	Decimal     = "0123456789"
	Hexadecimal = "0123456789abcdefABCDEF"
)

// NameStart reports whether Unicode lets a name begin with r (ID_Start). Characters that
// a language adds, such as an underscore, are not included.
func NameStart(r rune) bool {
	return unicode.IsLetter(r) || unicode.In(r, unicode.Nl, unicode.Other_ID_Start)
}

// NamePart reports whether Unicode lets a name continue with r (ID_Continue).
func NamePart(r rune) bool {
	return NameStart(r) || unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc, unicode.Other_ID_Continue)
}
