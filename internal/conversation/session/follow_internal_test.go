package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/service/auth"
)

// TestFollow has sessions change at random, and compares what a Follower makes of the log, read in pieces,
// with what the session itself does.
func TestFollow(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		log := &bufferLog{}
		s := New("", NewID(), log, Options{}, State{Settings: Settings{SaveSession: new(true)}})
		var f Follower
		var said []chat.Message
		for n := range 30 {
			var err error
			ctx := t.Context()
			role := []chat.Message{chat.Text(chat.System, "s"), chat.Text(chat.User, "1?"), chat.Text(chat.Assistant, "2.")}[:rnd.IntN(4)]
			turn := Turn{Role: role, User: chat.Text(chat.User, fmt.Sprint("q", n)), Reply: []chat.Message{chat.Text(chat.Assistant, fmt.Sprint("a", n))}}
			switch rnd.IntN(8) {
			case 0:
				_, _ = s.Undo(ctx) // there may be nothing
			case 1:
				turn.Mode = Regenerate
				err = s.Append(ctx, turn)
			case 2:
				err = s.Clear(ctx)
			case 3:
				_, _ = s.Compress(ctx, Compaction{Keep: 1 + rnd.IntN(2), Summarize: func(context.Context, []chat.Message) (string, chat.Usage, error) { return "recap", chat.Usage{}, nil }})
			default:
				err = s.Append(ctx, turn)
			}
			if err != nil {
				t.Fatal(err)
			}
			if rnd.IntN(3) > 0 {
				continue
			}
			tail := log.data[min(f.Offset, int64(len(log.data))):]
			for _, c := range f.Follow(tail[:len(tail)-rnd.IntN(min(len(tail), 20)+1)]) {
				said = append(said[:len(said)-c.Drop], c.Messages...)
			}
		}
		for _, c := range f.Follow(log.data[f.Offset:]) {
			said = append(said[:len(said)-c.Drop], c.Messages...)
		}
		h := &s.view.history
		want := append(append([]chat.Message{}, h.compacted...), h.live[h.lead:]...)
		if len(said)+len(want) > 0 && !reflect.DeepEqual(said, want) {
			t.Fatalf("seed %d: followed\n%v\nwant\n%v\nlog\n%s", seed, said, want, log.data)
		}
	}
}

// bufferLog is a log in memory of one session.
type bufferLog struct {
	state State
	data  []byte
}

func (l *bufferLog) Create(_ context.Context, st State) error    { l.state = st; return nil }
func (l *bufferLog) Adopt(context.Context, Alias) (ID, error)    { return "", nil }
func (l *bufferLog) Load(context.Context) (State, []byte, error) { return l.state, l.data, nil }
func (l *bufferLog) Tail(_ context.Context, offset int64) ([]byte, error) {
	return l.data[offset:], nil
}

func (l *bufferLog) Update(_ context.Context, change func(Tx) error) error {
	return change(bufferTx{l})
}
func (l *bufferLog) Owner(context.Context) (*auth.Owner, error) { return nil, nil }
func (l *bufferLog) Claim(context.Context, auth.Owner) (*auth.Owner, error) {
	return nil, nil
}
func (l *bufferLog) Rename(context.Context, Alias) error                  { return nil }
func (l *bufferLog) NewDraft(context.Context) (DraftFile, error)          { return nil, nil }
func (l *bufferLog) AbandonedDrafts(context.Context) ([]DraftFile, error) { return nil, nil }
func (l *bufferLog) Withdraw(context.Context, int64) (bool, error)        { return false, nil }

// bufferTx is a transaction of a bufferLog.
type bufferTx struct{ log *bufferLog }

func (t bufferTx) Size() (int64, error)              { return int64(len(t.log.data)), nil }
func (t bufferTx) Tail(offset int64) ([]byte, error) { return t.log.data[offset:], nil }
func (t bufferTx) State() (State, error)             { return t.log.state, nil }
func (t bufferTx) SetState(st State) error           { t.log.state = st; return nil }
func (t bufferTx) Append(size int64, data []byte) error {
	t.log.data = append(t.log.data[:size:size], data...)
	return nil
}
