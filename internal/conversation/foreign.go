package conversation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"loki/internal/agent/harness"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/tool"
	"loki/internal/workflow/run"
)

// maxServed is how much of a file the program of a foreign agent can read, in bytes.
const maxServed = 64 << 20

// serveForeign makes what answers the program of a foreign agent, which gets the tools of set.
func (t *turn) serveForeign(f *run.Frame, set tool.Set) error {
	judged, err := tool.NewSet(t.kit.Foreign.JudgedTools()...)
	if err != nil {
		return err
	}
	o := t.kit.Calls
	o.Run, o.From, o.Hooks, o.Mode = f.Events.Run, t.from(), t.rc.Hooks, t.mode
	box := func(tools tool.Set) *tool.Box {
		o.Tools = tools
		return tool.NewBox(o)
	}
	a := &t.foreign
	a.Asker, a.From, a.Dry, a.Uncertain = cmp.Or[ask.Asker](o.Asker, ask.Unavailable{}), o.From, t.c.values.dryRun, o.Uncertain
	if a.Judge = box(judged); set.Len() > 0 {
		a.Tools = box(set)
	}
	o.MaxOutput = maxServed
	a.Work = box(t.kit.Served)
	o.AutoConfirm = true
	a.Allowed = box(t.kit.Served)
	return nil
}

// continued is the session of a program, and what was said in it last.
type continued struct {
	harness.Session
	Reply string `json:"reply"` // digest
}

// askForeign has the program of a foreign agent answer.
func (t *turn) askForeign(ctx context.Context) (engine.Reply, error) {
	c, p := t.c, t.kit.Foreign
	if p.Looks = p.Looks || t.mode() == chat.ModePlan; p.Looks && !p.Confined() {
		return engine.Reply{}, fault.New(fault.Refused, "agent %s is a program of others, of which nothing ensures without a sandbox that it changes nothing", c.agent.Name).WithHint("use another mode: .mode ask")
	}
	a, messages := t.foreign, t.req.Messages
	a.Said = t.req.Said
	if len(messages) > 0 && messages[0].Role == chat.System {
		a.Lead, messages = messages[0].Text(), messages[1:]
	}
	last := len(messages) - 1
	a.Earlier, a.User = messages[:last], messages[last]
	if t.form != nil {
		a.Form = t.form.schema
	}
	kept := c.session != nil && !t.q.Aside
	if kept {
		var was continued
		if json.Unmarshal([]byte(c.session.Settings().Foreign), &was) == nil && was.Reply == digestOf(a.Earlier) {
			a.Session = was.Session
		}
	}
	answer, err := p.Answer(ctx, &t.rc, a)
	if err == nil && kept && answer.Session.ID != "" {
		data, _ := json.Marshal(continued{answer.Session, digestOf(answer.Messages)}) // numbers and texts can be marshalled
		c.session.Sync(func(s *session.Settings) { s.Foreign = string(data) })
	}
	return answer.Reply, err
}

// digestOf returns a digest of the last text of the model in messages, "" without one.
func digestOf(messages []chat.Message) string {
	text := textOf(messages)
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
