package filestore

import (
	"encoding/json"
	"fmt"
	"os"

	"loki/internal/conversation/session"
	"loki/internal/service/auth"
)

// owner returns the owner of a session, nil if it has none. A file without a subject in it makes the
// session that of an owner without a name, which is no subject: it is better not to be seen than to be
// seen by all.
func (r *room) owner(id session.ID) (*auth.Owner, error) {
	text, err := os.ReadFile(r.path(id, ownerFile))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the owner of session %s: %w", id, err)
	}
	var owner auth.Owner
	if json.Unmarshal(text, &owner) != nil {
		return new(auth.Owner), nil
	}
	return &owner, nil
}

func encodeOwner(owner auth.Owner) []byte {
	text, _ := json.Marshal(owner) // two strings
	return append(text, '\n')
}
