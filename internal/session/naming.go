package session

import (
	"context"
	"strings"
	"unicode"

	"loki/internal/chat"
)

// naming is what a title is made from.
type naming struct {
	text string // the first question and its answer; "" if there is nothing to name
	busy bool   // a title is being made
}

// The longest title, in characters and in bytes.
const (
	maxTitle      = 60
	maxTitleBytes = 150 // fits into an alias with the time in front
)

// prepareNaming remembers the first turn of a temporary session that is saved by
// itself, so that the user is not asked for a name.
func (s *Session) prepareNaming(o turnOp) {
	save := s.state.Settings.SaveSession
	if !s.temp || s.state.Title != "" || save == nil || !*save {
		return
	}
	var answer string
	for _, m := range o.reply {
		if m.Role == chat.Assistant {
			answer = m.Text()
		}
	}
	s.naming.text = "USER: " + o.user.Text() + "\nASSISTANT: " + answer
}

// NeedsName reports whether [Session.AutoName] has something to do.
func (s *Session) NeedsName() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.needsName()
}

func (s *Session) needsName() bool {
	return s.naming.text != "" && !s.naming.busy && s.state.Title == ""
}

// Title returns what the conversation was named, "" if it was not.
func (s *Session) Title() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Title
}

// AutoName names a temporary session that needs it, see [Session.NeedsName], and
// otherwise does nothing. ask gives the first question and its answer to a model and
// returns what it makes of them and what that used, which counts for the session; a title is made of that by [Slug]. The title becomes
// part of the alias. After an error the session still needs a name.
func (s *Session) AutoName(ctx context.Context, ask func(ctx context.Context, text string) (string, chat.Usage, error)) error {
	s.mu.Lock()
	if !s.needsName() {
		s.mu.Unlock()
		return nil
	}
	s.naming.busy = true
	text := s.naming.text
	s.mu.Unlock()

	reply, usage, err := ask(ctx, text)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.naming.busy = false
	if err != nil {
		return err
	}
	title := Slug(reply)
	if usage != (chat.Usage{}) {
		s.remember(usageOp{usage: usage, at: s.now()})
	}
	if title == "" || s.naming.text == "" { // cleared meanwhile
		return nil
	}
	s.state.Title, s.stale = title, true
	if !s.stored {
		return nil
	}
	if at, ok := s.state.Alias.Title(); ok && at == "" && s.temp {
		alias := s.state.Alias + "-" + Alias(title)
		if err := s.log.Rename(ctx, alias); err != nil {
			return err
		}
		s.state.Alias = alias
	}
	return s.commit(ctx, nil)
}

// Slug makes a title of a model's reply: without thoughts, and with a hyphen for each
// character that is neither a letter nor a number, but none at the ends. The result has
// at most 60 characters and may be empty.
func Slug(reply string) string {
	title := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) {
			return r
		}
		return '-'
	}, strings.TrimSpace(chat.WithoutThinking(reply)))
	runes := []rune(strings.Trim(title, "-"))
	runes = runes[:min(len(runes), maxTitle)]
	for len(string(runes)) > maxTitleBytes {
		runes = runes[:len(runes)-1]
	}
	return strings.Trim(string(runes), "-")
}
