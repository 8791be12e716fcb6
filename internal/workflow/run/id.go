package run

import (
	"crypto/rand"
	"slices"
	"strings"

	"loki/internal/base/fault"
)

// idAlphabet is Crockford's base 32 in lower case: no i, l, o and u.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// IDLength is the number of characters of a run's id.
const IDLength = 8

// NewID returns a random id for a run. Of a million runs, the chance that a new id
// is taken is one in a million: a store that finds it taken draws again.
func NewID() string {
	var b [IDLength]byte
	_, _ = rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = idAlphabet[b[i]%byte(len(idAlphabet))]
	}
	return string(b[:])
}

// ParseID returns what a person typed as an id, or the beginning of one, in the form
// that ids have: in lower case, with 0 for o and 1 for i and l, which Crockford's
// alphabet leaves out because people mix them up. Text that cannot be the beginning
// of an id is an error with code NotFound, and an empty text is one with code Usage.
func ParseID(typed string) (prefix string, err error) {
	if typed == "" {
		return "", fault.New(fault.Usage, "the id of a run is missing").WithHint("loki --runs lists the runs")
	}
	prefix = strings.NewReplacer("o", "0", "i", "1", "l", "1").Replace(strings.ToLower(typed))
	if len(prefix) > IDLength || strings.Trim(prefix, idAlphabet) != "" {
		return "", noRun(typed)
	}
	return prefix, nil
}

// PickID returns the only one of the ids that a person can have meant with what they
// typed, which it is given all, or at least two of. None is an error with code NotFound
// and several are one with code Usage that lists them.
func PickID(typed string, ids []string) (string, error) {
	switch len(ids) {
	case 0:
		return "", noRun(typed)
	case 1:
		return ids[0], nil
	}
	const shown = 10
	ids = slices.Sorted(slices.Values(ids))
	list := strings.Join(ids[:min(len(ids), shown)], ", ")
	if len(ids) > shown {
		list += ", ..."
	}
	return "", fault.New(fault.Usage, "several runs begin with %q: %s", typed, list).WithHint("type more of the id")
}

func noRun(id string) error {
	return fault.New(fault.NotFound, "there is no run %q", id).ThatMisses("run").WithHint("loki --runs lists the runs")
}
