package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"loki/internal/chat"
)

// Unanswered returns how many of the live messages, from the last, belong to a turn that asked
// user and was interrupted: the question and what came of its answer. It is 0 if the session
// ends with another turn.
func (s *Session) Unanswered(user chat.Message) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.view.history
	asked := s.fingerprint(user)
	last := h.find(func(m chat.Message) bool { return m.Role == chat.User && s.fingerprint(m) == asked })
	if last < 0 {
		return 0
	}
	end := h.live[len(h.live)-1]
	if end.Role != chat.Assistant || !strings.HasSuffix(end.Text(), Interrupted) {
		return 0
	}
	return len(h.live) - last
}

// Place identifies the message that the session ends with, apart from its last n live ones; ""
// if there is none but those of the role. It stays the same when older turns are compressed.
func (s *Session) Place(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.view.history
	i := len(h.live) - 1 - n
	if i < h.lead {
		return ""
	}
	return s.fingerprint(h.live[i])
}

// fingerprint returns a digest of m as it is stored.
func (s *Session) fingerprint(m chat.Message) string {
	text, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(s.options.hide(string(text))))
	return hex.EncodeToString(sum[:])
}
