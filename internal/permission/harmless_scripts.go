package permission

import (
	"slices"
	"strings"
)

// sedWords allows scripts that print, delete and substitute.
func sedWords(c *command) string {
	script, given := "", false
	args := c.words[1:]
	var operands []word
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.known() && (w.isOption() || !given):
			return "sed with words that are not known"
		case w.is("-e"), w.is("--expression"), w.is("-ne"):
			if i+1 >= len(args) || !args[i+1].known() {
				return "sed with a script that is not known"
			}
			i++
			script += args[i].text + ";"
			given = true
		case len(w.text) > 1 && w.text[0] == '-' && strings.Trim(w.text[1:], "nErsu") == "",
			w.is("--quiet"), w.is("--silent"), w.is("--regexp-extended"), w.is("--posix"):
		case strings.HasPrefix(w.text, "-"):
			return "the option " + w.text + " of sed"
		default:
			operands = append(operands, w)
			if len(operands) == 1 && !given && !slices.ContainsFunc(args[i+1:], func(w word) bool { return w.is("-e") || w.is("-ne") || w.is("--expression") }) {
				script, given = w.text, true
			}
		}
	}
	if !printing(script) {
		return "a sed script that may write or run something"
	}
	return ""
}

// printing reports whether a sed script has only addresses, the commands p, d, q, = and l,
// and substitutions with the flags g, p, i, I and numbers.
func printing(s string) bool {
	for {
		s = strings.TrimLeft(s, " ;")
		if s == "" {
			return true
		}
		for range 2 { // addresses
			switch {
			case s != "" && (s[0] >= '0' && s[0] <= '9' || s[0] == '$'):
				s = strings.TrimLeft(s, "0123456789$~+")
			case s != "" && s[0] == '/':
				end := delimited(s[1:], '/')
				if end < 0 {
					return false
				}
				s = strings.TrimLeft(s[1+end+1:], "I")
			}
			s = strings.TrimLeft(s, " ")
			if !strings.HasPrefix(s, ",") {
				break
			}
			s = strings.TrimLeft(s[1:], " +~")
		}
		s = strings.TrimLeft(s, " !")
		if s == "" {
			return false
		}
		switch s[0] {
		case 'p', 'd', 'q', '=', 'l', 'n', 'N', 'D', 'P', 'h', 'H', 'g', 'G', 'x':
			s = s[1:]
		case 's':
			if len(s) < 2 || strings.IndexByte("/|#,:@!_%+", s[1]) < 0 {
				return false
			}
			sep := s[1]
			a := delimited(s[2:], sep)
			if a < 0 {
				return false
			}
			b := delimited(s[2+a+1:], sep)
			if b < 0 {
				return false
			}
			s = strings.TrimLeft(s[2+a+1+b+1:], "gpiI0123456789")
		default:
			return false
		}
		s = strings.TrimLeft(s, " ")
		if s != "" && s[0] != ';' {
			return false
		}
	}
}

// delimited returns where the text before a separator ends, -1 if it does not. Brackets
// and line feeds, in which seds differ, end it too soon.
func delimited(s string, sep byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			if i < len(s) && s[i] == '\n' {
				return -1
			}
		case '\n':
			return -1
		case '[':
			if i = bracket(s, i, sep); i < 0 {
				return -1
			}
		case sep:
			return i
		}
	}
	return -1
}

// bracket returns where the bracket expression that begins at i ends, -1 if seds may not
// agree on that.
func bracket(s string, i int, sep byte) int {
	for i++; i < len(s); i++ {
		switch {
		case s[i] == sep || s[i] == '\n' || s[i] == '\\' && i+1 < len(s) && s[i+1] == ']':
			return -1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			end := strings.Index(s[i+2:], string(s[i+1])+"]")
			if end < 0 || strings.IndexByte(s[i:i+2+end], sep) >= 0 {
				return -1
			}
			i += 2 + end + 1
		case s[i] == ']':
			if s[i-1] == '[' || s[i-1] == '^' {
				return -1
			}
			return i
		}
	}
	return -1
}

// awkWords allows programs that only print.
func awkWords(c *command) string {
	args := c.words[1:]
	for len(args) > 0 {
		w := args[0]
		if !w.known() {
			return "awk with words that are not known"
		}
		if w.is("-F") || w.is("-v") {
			if len(args) < 2 || !args[1].known() {
				return "awk with words that are not known"
			}
			args = args[2:]
			continue
		}
		if strings.HasPrefix(w.text, "-F") {
			args = args[1:]
			continue
		}
		break
	}
	if len(args) == 0 || strings.HasPrefix(args[0].text, "-") {
		return "awk with options that are not analysed"
	}
	program := strings.ReplaceAll(strings.ReplaceAll(args[0].text, "||", ""), ">=", "")
	if strings.ContainsAny(program, "|>@<`") || !onlyPrints(program) {
		return "an awk program that may write, read or run something else"
	}
	for _, w := range args[1:] {
		if strings.HasPrefix(w.text, "-") {
			return "awk with options that are not analysed"
		}
	}
	return ""
}

func onlyPrints(program string) bool {
	for _, name := range [...]string{"system", "getline", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "SYMTAB", "FUNCTAB", "FILENAME=", "close", "fflush", "include", "load", "extension"} {
		if strings.Contains(program, name) {
			return false
		}
	}
	return true
}
