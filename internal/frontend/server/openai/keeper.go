package openai

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"loki/internal/conversation/session"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/chat"
	"loki/internal/service/auth"
)

// keeper keeps what was said in a response in a session, so that another response can follow it. The id of the
// response names the session, and where in it the answer begins:
//
//	resp_SESSION_MESSAGES
//
// A response that follows one that is not the last of its session continues in a new session.
type keeper struct {
	s       *session.Session // nil keeps nothing
	release func()
	input   []chat.Message // what the request adds to the session
	begins  int            // messages before the answer
	other   string         // id of a response that is not kept
}

// The beginnings of the ids of responses, and of responses that are the question of a run: resp_run_RUN_RANDOM.
const (
	idPrefix    = "resp_"
	runIDPrefix = "resp_run_"
)

// access returns the rule about sessions and runs.
func (s *service) access() auth.Access {
	if c := s.app.Config.API; c != nil {
		return auth.Access{AdoptUnowned: c.AdoptUnowned}
	}
	return auth.Access{}
}

// keeper returns what keeps the answer to a request, and puts what was said before into the request. The caller
// closes it.
func (s *service) keeper(ctx context.Context, r *request, w *responseRequest) (*keeper, error) {
	k := &keeper{other: newID(idPrefix), release: func() {}}
	previous := ""
	if w.PreviousResponseID != nil {
		previous = *w.PreviousResponseID
	}
	if run, ok := strings.CutPrefix(previous, runIDPrefix); ok {
		r.Loki.RunID, _, _ = strings.Cut(run, "_")
		return k, nil
	}
	kept := w.Store == nil || *w.Store
	t, err := s.target(r.Model)
	if err != nil {
		return nil, err
	}
	if t.kind == kindAgent && s.isGraph(t.name) {
		if previous != "" {
			return nil, previousNotFound(previous)
		}
		return k, nil
	}
	if !kept && previous == "" {
		return k, nil
	}
	system := slices.DeleteFunc(slices.Clone(r.History), func(m chat.Message) bool { return m.Role != chat.System })
	k.input = slices.DeleteFunc(slices.Clone(r.History), func(m chat.Message) bool { return m.Role == chat.System })
	store, err := s.app.Sessions()
	if err != nil {
		return nil, err
	}
	var past []chat.Message
	if previous != "" {
		if past, err = k.open(ctx, s, store, previous, r.clients(t)); err != nil {
			k.close()
			return nil, err
		}
		name(k.input, past)
	}
	r.History = slices.Concat(system, past, k.input)
	if id := unansweredCall(r.History); id != "" {
		k.close()
		return nil, invalid("input", "there is no output for the call %q of response %s", id, previous)
	}
	if r.User.Role != "" {
		k.input = append(k.input, r.User)
	}
	switch {
	case !kept:
		k.close()
		k.s, k.release = nil, func() {}
	case k.s == nil || len(k.s.Messages()) > len(past): // a new one, or a branch
		k.close()
		k.s, k.release = store.Temp("", session.Settings{Settings: chat.Settings{Model: r.Model}}), func() {}
		if t.kind != kindModel {
			k.s.Set(func(st *session.Settings) { st.Model = "" })
		}
		k.s.OwnNew(s.access().Owner(rest.Subject(ctx)))
		k.s.ForceSave()
		rest.AboutNewSession(ctx, string(k.s.ID()))
		k.input = slices.Concat(past, k.input)
		k.begins = len(k.input)
	default:
		rest.AboutSession(ctx, string(k.s.ID()))
		k.begins = len(past) + len(k.input)
	}
	return k, nil
}

// open opens the session of a response and returns what was said up to its end.
func (k *keeper) open(ctx context.Context, s *service, store session.Store, response string, isClients func(tool string) bool) ([]chat.Message, error) {
	id, place, _ := strings.Cut(strings.TrimPrefix(response, idPrefix), "_")
	sid, err := session.ParseID(dashID(id))
	begins, numErr := strconv.Atoi(place)
	if err != nil || numErr != nil || begins < 0 {
		return nil, previousNotFound(response)
	}
	found, err := store.Open(ctx, "", sid)
	if errors.Is(err, session.ErrNotFound) {
		return nil, previousNotFound(response)
	}
	if err != nil {
		return nil, err
	}
	owner, err := found.Owner(ctx)
	if err != nil {
		return nil, err
	}
	if !s.access().View(rest.Subject(ctx)).Includes(owner) {
		return nil, previousNotFound(response)
	}
	leave, err := s.lanes.Enter(ctx, store, sid) // another request may continue the same response, also at another server
	if err != nil {
		return nil, err
	}
	release, err := found.Acquire(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	k.s, k.release = found, func() {
		release()
		leave()
	}
	end := endOf(found.Messages(), begins, isClients)
	if end < 0 {
		return nil, previousNotFound(response)
	}
	return slices.Clone(found.Messages()[:end]), nil
}

// clients returns what reports whether a tool is one that the client runs: all are if the program's own are not
// offered.
func (r *request) clients(t target) func(tool string) bool {
	return func(tool string) bool {
		return t.kind == kindModel || slices.ContainsFunc(r.Tools, func(own chat.Tool) bool { return own.Name == tool })
	}
}

// endOf returns where the answer ends that begins at a message, -1 if none does. It ends with a message without
// calls, or with calls of the client's tools and the results of the others.
func endOf(messages []chat.Message, at int, isClients func(tool string) bool) int {
	for i := at; i < len(messages); i++ {
		m := messages[i]
		if m.Role != chat.Assistant {
			continue // a result, or what made the model continue
		}
		end := i + 1
		open := slices.ContainsFunc(m.ToolCalls, func(c chat.ToolCall) bool { return isClients(c.Name) })
		for ; end < len(messages) && messages[end].Role == chat.ToolRole && !isClients(messages[end].ToolName); end++ {
		}
		goesOn := end < len(messages) && (messages[end].Continuation || messages[end].Steer || messages[end].Role == chat.Assistant)
		if open || !goesOn {
			return end
		}
	}
	return -1
}

// dashID returns a session's id from the one without dashes.
func dashID(id string) string {
	if len(id) != 32 {
		return id
	}
	return id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
}

// name gives results the names of the tools whose calls are in past.
func name(results, past []chat.Message) {
	for i, m := range results {
		if m.Role != chat.ToolRole || m.ToolName != "" {
			continue
		}
		for _, p := range past {
			for _, c := range p.ToolCalls {
				if c.ID == m.ToolCallID {
					results[i].ToolName = c.Name
				}
			}
		}
	}
}

// unansweredCall returns the id of a call without a result; empty if there is none.
func unansweredCall(messages []chat.Message) string {
	for i, m := range messages {
		for _, c := range m.ToolCalls {
			if !slices.ContainsFunc(messages[i+1:], func(r chat.Message) bool { return r.ToolCallID == c.ID }) {
				return c.ID
			}
		}
	}
	return ""
}

// id returns the id of the response.
func (k *keeper) id() string {
	if k.s == nil {
		return k.other
	}
	return idPrefix + strings.ReplaceAll(string(k.s.ID()), "-", "") + "_" + strconv.Itoa(k.begins)
}

// keep keeps the answer.
func (k *keeper) keep(ctx context.Context, a answer) error {
	if k.s == nil || a.Loki.Question != nil { // the run has it
		return nil
	}
	ctx = context.WithoutCancel(ctx) // what was answered is paid for
	turn := session.Turn{Reply: a.Messages, Usage: a.Usage}
	if n := len(k.input); n > 0 && k.input[n-1].Role == chat.User {
		turn.User, k.input = k.input[n-1], k.input[:n-1]
	}
	if len(k.input) > 0 {
		if err := k.s.Append(ctx, session.Turn{Reply: k.input}); err != nil {
			return err
		}
	}
	return k.s.Append(ctx, turn)
}

func (k *keeper) close() { k.release() }
