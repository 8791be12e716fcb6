package session

import (
	"time"

	"loki/internal/llm/chat"
)

// Follower follows what is said in a session by reading its log bit by bit. It is for what keeps a
// copy of it, such as a search index. The zero Follower has read nothing.
type Follower struct {
	Offset    int64 `json:"offset"`    // how much of the log was read
	Live      int   `json:"live"`      // live messages without those of the role
	Compacted int   `json:"compacted"` // messages that compactions have replaced
	Begun     bool  `json:"begun"`     // there are live messages, be it only those of the role
}

// Said is a change of what was said.
type Said struct {
	Drop     int // how many of the last messages do not count any more
	Messages []chat.Message
	At       time.Time
}

// Follow reads data, which is in the log at Offset, and returns what it changes in the list of messages: all but those
// of the role, those too that compactions have replaced. A group that is being written is left for the
// next call.
func (f *Follower) Follow(data []byte) (changes []Said) {
	groups, used, _, _ := parse(data)
	f.Offset += int64(used)
	for _, g := range groups {
		switch g.Mark {
		case markTurn:
			drop := min(g.Replaces, f.Live)
			said := g.messages
			if !f.Begun {
				var h history
				h.begin(g)
				said = said[min(h.lead, len(said)):]
			}
			f.Begun = f.Begun || len(g.messages) > 0
			f.Live += len(said) - drop
			changes = append(changes, Said{drop, said, g.At})
		case markUndo:
			drop := min(g.Replaces, f.Live)
			f.Live -= drop
			f.Begun = f.Live+f.Compacted > 0
			changes = append(changes, Said{Drop: drop})
		case markCompaction:
			f.Compacted += f.Live - min(g.Keep, f.Live)
			f.Live = min(g.Keep, f.Live)
		case markEmpty:
			changes = append(changes, Said{Drop: f.Live + f.Compacted})
			*f = Follower{Offset: f.Offset}
		}
	}
	return changes
}
