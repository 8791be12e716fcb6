package mcpserver

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/ask"
	"loki/internal/base/file/atomicfile"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
)

// Members of the forms with which questions are asked.
const (
	formAnswer = "answer"
	formOther  = "other" // a text instead of an option
)

// elicits reports whether the client shows forms to its user.
func elicits(session *mcp.ServerSession) bool {
	init := session.InitializeParams()
	if init == nil || init.Capabilities == nil || init.Capabilities.Elicitation == nil {
		return false
	}
	of := init.Capabilities.Elicitation
	return of.Form != nil || of.URL == nil // neither is an older client, which has forms
}

// opens reports whether the client opens pages for its user.
func opens(session *mcp.ServerSession) bool {
	init := session.InitializeParams()
	return init != nil && init.Capabilities != nil && init.Capabilities.Elicitation != nil && init.Capabilities.Elicitation.URL != nil
}

// kindSecret is that of a question whose answer no client may see: it is answered at a page.
const kindSecret = "secret"

// forClient returns the questions that the client may show: consent only if the configuration lets it, and secrets only as a page.
func (s *server) forClient(session *mcp.ServerSession, pending []run.Pending) []run.Pending {
	return slices.DeleteFunc(slices.Clone(pending), func(p run.Pending) bool {
		if p.Kind == kindSecret && (s.link == nil || !opens(session)) || p.Kind != kindSecret && !elicits(session) {
			return true
		}
		return isConsent(p) && !s.settings.Consent || !s.who.Allows(auth.WriteRuns) || len(p.Assignees) > 0 && !s.who.Anonymous() && !s.who.IsOneOf(p.Assignees)
	})
}

// isConsent reports whether a question is about permission. One of an older release does not say.
func isConsent(p run.Pending) bool {
	return p.Kind == "consent" && len(p.Options) > 0 || p.Kind == "" && len(p.Options) > 1 && slices.Equal(p.Options[:2], []string{"yes", "no"})
}

// request returns how a client shows a question of a run.
func (s *server) request(id string, p run.Pending) (*mcp.ElicitParams, error) {
	if p.Kind != kindSecret {
		return form(p), nil
	}
	link, err := s.link(id, p)
	return &mcp.ElicitParams{Mode: "url", Message: p.Text, URL: link, ElicitationID: id + "/" + p.ID}, err
}

// answeredAtPage waits until none of the questions that a client has opened as a page is open any more, at most until a time. It reports whether
// that is so.
func (s *server) answeredAtPage(ctx context.Context, id string, opened []run.Pending, until time.Time) (bool, error) {
	tick := time.NewTicker(progressIn)
	defer tick.Stop()
	for {
		info, err := s.runs.Store().Info(ctx, id)
		if err != nil {
			return false, err
		}
		pending, err := s.openQuestions(ctx, info)
		waits := slices.ContainsFunc(pending, func(p run.Pending) bool {
			return slices.ContainsFunc(opened, func(o run.Pending) bool { return o.ID == p.ID })
		})
		if err != nil || !waits || time.Now().After(until) {
			return !waits, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// pagesOf returns the questions whose page the user has agreed to open.
func pagesOf(questions []run.Pending, given map[string]*mcp.ElicitResult) []run.Pending {
	return slices.DeleteFunc(slices.Clone(questions), func(p run.Pending) bool {
		return p.Kind != kindSecret || given[p.ID] == nil || given[p.ID].Action != "accept"
	})
}

// form returns the form of a question.
func form(p run.Pending) *mcp.ElicitParams {
	text := map[string]any{"type": "string", "title": "Answer"}
	properties, required := map[string]any{formAnswer: text}, []string{formAnswer}
	switch {
	case isConsent(p):
		text["enum"] = []string{"yes", "no"} // and never always
	case p.Multi:
		properties[formAnswer] = map[string]any{"type": "array", "title": "Answers", "items": map[string]any{"type": "string", "enum": p.Options}}
	case len(p.Options) > 0:
		text["enum"] = p.Options
		if p.Open {
			properties[formOther], required = map[string]any{"type": "string", "title": "Something else"}, nil
		}
	}
	if p.Default != nil && !p.Multi && (len(p.Options) == 0 || slices.Contains(p.Options, *p.Default)) {
		text["default"] = *p.Default
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if required != nil {
		schema["required"] = required
	}
	return &mcp.ElicitParams{Mode: "form", Message: p.Text, RequestedSchema: schema}
}

// answerOf returns the answer that a filled form gives. Ok is false for none: the user declined, or closed it. A declined question about permission is a no.
func answerOf(p run.Pending, r *mcp.ElicitResult) (answer string, ok bool) {
	if r == nil || r.Action != "accept" {
		return "no", r != nil && r.Action == "decline" && isConsent(p)
	}
	if other, _ := r.Content[formOther].(string); other != "" {
		return other, true
	}
	switch v := r.Content[formAnswer].(type) {
	case string:
		return v, true
	case []any:
		var chosen []string
		for _, one := range v {
			text, _ := one.(string)
			chosen = append(chosen, text)
		}
		return ask.JoinAnswers(chosen), true
	}
	return "", false
}

// elicit asks the user of the client the questions of a run, one after the other, until one is declined. It returns [ask.ErrElsewhere] if one
// was answered in another place meanwhile, which withdraws the form.
func (s *server) elicit(ctx context.Context, session *mcp.ServerSession, id string, questions []run.Pending) (map[string]*mcp.ElicitResult, error) {
	given := make(map[string]*mcp.ElicitResult)
	for _, p := range questions {
		request, err := s.request(id, p)
		if err != nil {
			return nil, err
		}
		waiting, stop := run.WhileOpen(ctx, s.runs.Store(), id, p.ID)
		r, err := session.Elicit(waiting, request)
		elsewhere := waiting.Err() != nil && ctx.Err() == nil
		stop()
		if elsewhere && len(given) == 0 {
			return nil, ask.ErrElsewhere
		} else if elsewhere {
			break
		}
		if err != nil {
			return nil, err
		}
		if given[p.ID] = r; r.Action != "accept" {
			break
		}
	}
	return given, nil
}

// state is what the client gives back with the answers to the questions of a call.
type state struct {
	Run     string    `json:"run"`
	Subject string    `json:"subject"` // who called
	Call    [32]byte  `json:"call"`    // digest of the name of the tool and the arguments
	Expires time.Time `json:"expires"`
}

// stateTime is how long the questions of a call can be answered by repeating the call.
const stateTime = 24 * time.Hour

// digest identifies a call.
func digest(req *mcp.CallToolRequest) [32]byte {
	return sha256.Sum256([]byte(req.Params.Name + "\x00" + string(req.Params.Arguments)))
}

// inputRequired is the result of a call whose run asks.
func (s *server) inputRequired(req *mcp.CallToolRequest, id string, questions []run.Pending) (*mcp.CallToolResult, error) {
	sealed, err := s.seal(state{id, s.who.Subject, digest(req), time.Now().Add(stateTime)})
	if err != nil {
		return nil, err
	}
	requests, err := s.requests(id, questions)
	return &mcp.CallToolResult{InputRequests: requests, RequestState: sealed}, err
}

// requests returns how a client shows several questions of a run, by their ids.
func (s *server) requests(id string, questions []run.Pending) (mcp.InputRequestMap, error) {
	all := make(mcp.InputRequestMap)
	for _, p := range questions {
		request, err := s.request(id, p)
		if err != nil {
			return nil, err
		}
		all[p.ID] = request
	}
	return all, nil
}

// goOn answers the questions of the run of a call, and continues it.
func (s *server) goOn(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	st, err := s.unseal(req.Params.RequestState)
	if err != nil || st.Call != digest(req) || st.Subject != s.who.Subject || time.Now().After(st.Expires) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not that of this call, or has expired"}
	}
	s.note(ctx, st.Run)
	pending, err := s.runs.Store().Pending(ctx, st.Run)
	if err != nil {
		return failureResult(err), nil
	}
	given := make(map[string]*mcp.ElicitResult)
	for id, r := range req.Params.InputResponses {
		given[id], _ = r.(*mcp.ElicitResult)
	}
	questions := s.forClient(req.Session, pending)
	if len(answers(questions, given)) == 0 {
		if _, err := s.answeredAtPage(ctx, st.Run, pagesOf(questions, given), time.Now().Add(s.settings.Wait)); err != nil {
			return nil, err
		}
		info, err := s.runs.Store().Info(ctx, st.Run)
		if err == nil {
			pending, err = s.openQuestions(ctx, info)
		}
		if err != nil || info.Status == run.Suspended { // no question was answered here, or all were answered elsewhere
			return s.resultOr(info, pending, err), nil
		}
	} else if err := s.respond(ctx, st.Run, questions, given); err != nil {
		return failureResult(err), nil
	}
	return s.follow(ctx, req, st.Run, s.settings.Wait)
}

// answers returns the answers that filled forms give to questions. A secret is never taken from one.
func answers(questions []run.Pending, given map[string]*mcp.ElicitResult) map[string]string {
	texts := make(map[string]string)
	for _, p := range questions {
		if answer, ok := answerOf(p, given[p.ID]); ok && p.Kind != kindSecret {
			texts[p.ID] = answer
		}
	}
	return texts
}

// respond answers questions of a run that the client may answer. That one was answered elsewhere is no error.
func (s *server) respond(ctx context.Context, id string, questions []run.Pending, given map[string]*mcp.ElicitResult) error {
	texts := answers(questions, given)
	if len(texts) == 0 {
		return nil
	}
	err := s.answer(ctx, id, texts)
	if _, refused := errors.AsType[*run.RefusedError](err); refused {
		return nil
	}
	return err
}

// resultOr is result, or the failure to look at the run.
func (s *server) resultOr(info run.Info, pending []run.Pending, err error) *mcp.CallToolResult {
	if err != nil {
		return failureResult(err)
	}
	return s.result(info, pending)
}

// keyFile is the file of the key in the state directory, so that calls can be repeated at another process.
const keyFile = "mcp.key"

// loadKey reads the key, or makes one.
func (s *base) loadKey() error {
	path := filepath.Join(s.app.Paths.StateDir, keyFile)
	key, err := os.ReadFile(path)
	if err == nil && len(key) == len(s.key) {
		copy(s.key[:], key)
		return nil
	}
	_, _ = rand.Read(s.key[:]) // which never fails
	if err := os.MkdirAll(s.app.Paths.StateDir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, s.key[:], atomicfile.Options{Mode: 0o600})
}

func (s *base) aead() cipher.AEAD {
	block, err := aes.NewCipher(s.key[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return aead
}

// seal encrypts and signs a state.
func (s *base) seal(st state) (string, error) {
	data, err := json.Marshal(st)
	return base64.RawURLEncoding.EncodeToString(s.aead().Seal(nil, nil, data, nil)), err
}

// unseal returns a state that seal has sealed.
func (s *base) unseal(text string) (st state, err error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil {
		data, err = s.aead().Open(nil, nil, data, nil)
	}
	if err == nil {
		err = json.Unmarshal(data, &st)
	}
	return st, err
}
