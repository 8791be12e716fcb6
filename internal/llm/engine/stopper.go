package engine

import "strings"

// stopper passes a text on piece by piece, up to the first of some texts. It keeps back what may
// be the beginning of one. Providers stop there by themselves if they can.
type stopper struct {
	texts   []string // not empty
	held    string   // that was not passed on yet
	stopped bool     // one of the texts was found
}

// take returns what of the text so far can be passed on, with piece at its end.
func (s *stopper) take(piece string) string {
	if len(s.texts) == 0 {
		return piece
	}
	s.held += piece
	start, end, keep := 0, len(s.held)+1, 0
	for _, t := range s.texts {
		if i := strings.Index(s.held, t); i >= 0 && (i+len(t) < end || i+len(t) == end && i < start) {
			start, end, s.stopped = i, i+len(t), true // the one that is complete first
		}
		for n := min(len(t)-1, len(s.held)); n > keep; n-- {
			if strings.HasSuffix(s.held, t[:n]) {
				keep = n
			}
		}
	}
	if s.stopped {
		passed := s.held[:start]
		s.held = ""
		return passed
	}
	passed := s.held[:len(s.held)-keep]
	s.held = s.held[len(passed):]
	return passed
}

// rest returns what is withheld when the text has ended.
func (s *stopper) rest() string {
	text := s.held
	s.held = ""
	return text
}
