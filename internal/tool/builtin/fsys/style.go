package fsys

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Mark is the byte order mark of UTF-8.
const Mark = "\ufeff"

// Style is how a text is written, apart from its words. The zero value is that of a text of one line.
type Style struct {
	End  string // of its lines: "\n", "\r\n" or "\r"; "" if there is none, or if they differ
	Mark bool   // a byte order mark begins it
	Wide bool   // it is UTF-16
	Odd  bool   // it is neither that nor UTF-8
}

// StyleOf returns the style of a text that begins so.
func StyleOf(begin []byte) Style {
	s := Style{
		Mark: bytes.HasPrefix(begin, []byte(Mark)),
		Wide: bytes.HasPrefix(begin, []byte("\xff\xfe")) || bytes.HasPrefix(begin, []byte("\xfe\xff")),
	}
	last := max(0, len(begin)-utf8.UTFMax)
	for last < len(begin) && utf8.FullRune(begin[last:]) {
		last++
	}
	s.Odd = !s.Wide && !utf8.Valid(begin[:last]) // without a character that continues after the beginning
	both := bytes.Count(begin, []byte("\r\n"))
	lf, cr := bytes.Count(begin, []byte("\n"))-both, bytes.Count(bytes.TrimSuffix(begin, []byte("\r")), []byte("\r"))-both
	switch {
	case lf > 0 && both == 0:
		s.End = "\n"
	case both > 0 && lf == 0:
		s.End = "\r\n"
	case cr > 0 && both+lf == 0:
		s.End = "\r"
	}
	return s
}

// Keep returns a text that replaces one in the style s, with its line ends and its byte order mark, unless the text has
// carriage returns or the mark of its own. note says what was done, or what has changed, and is "" if there is nothing
// to say.
func (s Style) Keep(text string) (kept, note string) {
	if s.Wide {
		return text, "the file was UTF-16 and is UTF-8 now"
	}
	var notes []string
	if s.Odd {
		notes = append(notes, "the file was not UTF-8 and is now")
	}
	is := StyleOf([]byte(text))
	switch {
	case is.End == "\n" && (s.End == "\r\n" || s.End == "\r"):
		text = strings.ReplaceAll(text, "\n", s.End)
		notes = append(notes, "kept its "+endName(s.End)+" line ends")
	case is.End != "" && s.End != "" && is.End != s.End:
		notes = append(notes, "its line ends were "+endName(s.End)+" and are "+endName(is.End)+" now")
	}
	if s.Mark && !is.Mark {
		text = Mark + text
		notes = append(notes, "kept its byte order mark")
	}
	return text, strings.Join(notes, ", ")
}

func endName(end string) string {
	return map[string]string{"\n": "LF", "\r\n": "CRLF", "\r": "CR"}[end]
}
