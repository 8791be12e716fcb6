package session

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"loki/internal/llm/chat"
)

// The longest title, in characters and in bytes.
const (
	maxTitle      = 60
	maxTitleBytes = 150 // fits into an alias with the time in front
)

// NeedsName reports whether [Session.AutoName] has something to do: the session is temporary and
// saved without a question to the user, so that the user does not name it.
func (s *Session) NeedsName() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.topic() != ""
}

// topic returns the first question and its answer, from which a title is made; "" if the session needs
// none, or cannot have one yet.
func (s *Session) topic() string {
	save := s.state.Settings.SaveSession
	h := &s.view.history
	if !s.temp || s.naming || s.state.Title != "" || save == nil || !*save || len(h.live) == 0 {
		return ""
	}
	var question, answer string
	for _, m := range append(slices.Clip(h.compacted), h.live[h.lead:]...) {
		switch {
		case m.Role == chat.User && answer != "":
			return question + answer
		case m.Role == chat.User:
			question = "USER: " + m.Text() + "\nASSISTANT: "
		case m.Role == chat.Assistant && !strings.HasSuffix(m.Text(), Interrupted):
			answer = m.Text()
		}
	}
	if answer == "" {
		return ""
	}
	return question + answer
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
	text := s.topic()
	if text == "" {
		s.mu.Unlock()
		return nil
	}
	s.naming = true
	s.mu.Unlock()

	reply, usage, err := ask(ctx, text)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.naming = false
	if err != nil {
		return err
	}
	title := Slug(reply)
	if usage != (chat.Usage{}) {
		s.remember(usageOp{usage: usage, at: s.now()})
	}
	if title == "" || s.topic() == "" { // cleared meanwhile
		return nil
	}
	s.state.Title, s.stale = title, true
	if !s.stored {
		return nil
	}
	if rest, ok := s.state.Alias.Title(); ok && s.temp && strings.Trim(rest, "0123456789") == "" {
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
