package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"loki/internal/base/ask"
	"loki/internal/llm/catalog"
	"loki/internal/llm/provider/local"
	"loki/internal/setup/config"
)

// chooseModel finds out which models there are and which one is the default.
func (w *wizard) chooseModel(ctx context.Context, p provider, d *draft) error {
	known := catalog.New([]catalog.Client{{Name: d.name, Type: d.typ}}, w.Known).On(w.Today)
	if chat := slices.Collect(known.Models(catalog.Chat)); p.server == nil && len(ofClient(chat, d.name)) > 0 {
		return w.chooseDefault(ctx, ofClient(chat, d.name), d)
	}
	names, err := w.modelNames(ctx, p, d)
	if err != nil {
		return err
	}
	for _, name := range names {
		d.models = append(d.models, w.describe(ctx, p, name))
	}
	chat := slices.DeleteFunc(slices.Clone(d.models), func(m catalog.Model) bool { return m.Type != catalog.Chat })
	return w.chooseDefault(ctx, chat, d)
}

// describe returns what is known of a model: what its server says or, where that is nothing,
// that a chat model calls tools, as nearly all do.
func (w *wizard) describe(ctx context.Context, p provider, name string) catalog.Model {
	m := catalog.Guess(name)
	if m.Type != catalog.Chat {
		return m
	}
	m.SupportsFunctionCalling = true
	if p.server != nil {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(w.Timeout, DefaultTimeout))
		defer cancel()
		if a, ok := local.AbilitiesOf(ctx, w.HTTP, *p.server, name); ok {
			m.SupportsFunctionCalling, m.SupportsVision = a.Tools, a.Vision
		}
	}
	return m
}

// ofClient leaves out the models that are part of the program.
func ofClient(models []catalog.Model, client string) []catalog.Model {
	return slices.DeleteFunc(models, func(m catalog.Model) bool { return m.Client != client })
}

// chooseDefault asks which chat model is used when no model is named.
func (w *wizard) chooseDefault(ctx context.Context, models []catalog.Model, d *draft) error {
	if len(models) == 0 {
		w.note("None of these is a chat model, so there is no default model.")
		return nil
	}
	chosen := models[0].Name
	if len(models) > 1 || d.keeps != "" {
		labels := modelLabels(models)
		offered := labels
		if d.keeps != "" {
			offered = append([]string{"keep " + d.keeps}, labels...)
		}
		answer, err := w.selectOne(ctx, "model", "Which model is the default?", append(slices.Clip(offered), back))
		if err != nil {
			return err
		}
		if d.keeps != "" && answer == offered[0] {
			return nil
		}
		i := slices.Index(labels, answer)
		if i < 0 {
			return fmt.Errorf("there is no model %q", answer)
		}
		chosen = models[i].Name
	}
	d.model = d.name + ":" + chosen
	return nil
}

// modelLabels returns the names of models with their known properties, in columns.
func modelLabels(models []catalog.Model) []string {
	width := 0
	for _, m := range models {
		width = max(width, len(m.Name))
	}
	labels := make([]string, len(models))
	for i, m := range models {
		labels[i] = m.Name
		if about := m.Description(); m.Listed && strings.ContainsAny(about, "0123456789") {
			labels[i] = strings.TrimRight(fmt.Sprintf("%-*s  %s", width, m.Name, about), " ")
		}
	}
	return labels
}

// modelNames returns the models to list: what the server offers, as far as the user wants
// it, or what the user says.
func (w *wizard) modelNames(ctx context.Context, p provider, d *draft) ([]string, error) {
	var offered []string
	var err error
	switch {
	case p.server != nil:
		offered = p.server.Models
		if len(offered) == 0 && p.server.Kind == local.Ollama {
			w.note("Ollama has no chat model yet. Fetch one with: ollama pull llama3.2")
		}
	case d.typ == config.TypeOpenAICompatible:
		if offered, err = w.listedModels(ctx, d); err != nil {
			return nil, err
		}
	}
	switch {
	case len(offered) == 0:
		return w.typedNames(ctx)
	case p.server != nil:
		return offered, nil // they are the user's own
	}
	return w.tick(ctx, offered)
}

// listedModels returns the models of the server of a draft; none if it does not list them. The user is asked for another key if the server
// refuses theirs, and an address that lacks /v1 gets it.
func (w *wizard) listedModels(ctx context.Context, d *draft) ([]string, error) {
	for {
		names, status, err := w.listModels(ctx, d)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			return names, nil
		case (status == http.StatusUnauthorized || status == http.StatusForbidden) && len(d.secrets) > 0:
			w.note("The server refused the key: " + err.Error())
			if again, err := w.askAgain(ctx, d); err != nil || !again {
				return nil, err
			}
			continue
		}
		if status == http.StatusNotFound {
			names = w.withVersion(ctx, d)
		}
		if len(names) == 0 {
			w.note("The list of models could not be fetched: " + err.Error())
		}
		return names, ctx.Err()
	}
}

// askAgain asks for the key of a draft once more. It reports false if the user stays with the one that there is.
func (w *wizard) askAgain(ctx context.Context, d *draft) (bool, error) {
	text, err := w.checkedLine(ctx, ask.Secret, "api_key", "API key (empty to use that one anyway)", false, checkSecret)
	if err != nil || text == "" {
		return false, err
	}
	d.secrets[len(d.secrets)-1].text, d.known["api_key"] = text, text
	return true, nil
}

// withVersion returns the models of the server at the address of a draft with /v1 behind it, which then is the
// address; none if it does not list any there either.
func (w *wizard) withVersion(ctx context.Context, d *draft) []string {
	i := slices.IndexFunc(d.settings, func(s setting) bool { return s.name == "api_base" })
	base := strings.TrimRight(d.known["api_base"], "/")
	if i < 0 || strings.HasSuffix(base, "/v1") {
		return nil
	}
	longer := draft{known: map[string]string{"api_base": base + "/v1", "api_key": d.known["api_key"]}}
	names, _, err := w.listModels(ctx, &longer)
	if err != nil {
		return nil
	}
	d.known["api_base"], d.settings[i].value = base+"/v1", base+"/v1"
	w.note("The server answers at " + base + "/v1")
	return names
}

var errNoModel = errors.New("choose at least one")

// tick asks which of the models are wanted.
func (w *wizard) tick(ctx context.Context, offered []string) ([]string, error) {
	read := func(answer string) ([]string, error) {
		chosen, err := ask.SplitAnswers(answer)
		if err == nil && len(chosen) == 0 {
			err = errNoModel
		}
		return chosen, err
	}
	answer, err := w.Asker.Ask(ctx, ask.Question{
		ID: "models", Kind: ask.Multi, Text: "Which models do you want to use?", Options: offered,
		Validate: func(answer string) error {
			_, err := read(answer)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	return read(answer)
}

// typedNames asks for names of models.
func (w *wizard) typedNames(ctx context.Context) ([]string, error) {
	answer, err := w.checkedLine(ctx, ask.Line, "models", "Names of the models, with commas between them", true, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range strings.SplitSeq(answer, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, errNoModel
	}
	return names, nil
}

// maxList bounds the answer to a request for models, in bytes.
const maxList = 4 << 20

// listModels asks the server of a draft for its models, sorted. The status is that of its answer, 0 without one.
func (w *wizard) listModels(ctx context.Context, d *draft) (names []string, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(w.Timeout, DefaultTimeout))
	defer cancel()
	url := strings.TrimRight(d.known["api_base"], "/") + "/models"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	if key := d.known["api_key"]; key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := cmp.Or(w.HTTP, http.DefaultClient).Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, 0, errors.New("no server listens at " + d.known["api_base"] + "; start it, or correct the address")
	}
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, resp.StatusCode, fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList))
	if err == nil {
		names, err = modelIDs(body)
	}
	if err != nil {
		return nil, resp.StatusCode, fmt.Errorf("GET %s: %w", url, err)
	}
	return names, resp.StatusCode, nil
}

// modelIDs reads a list of models in the OpenAI format.
func modelIDs(body []byte) ([]string, error) {
	var list struct {
		Data []struct{ ID string }
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, errors.New("the answer is not a list of models")
	}
	var names []string
	for _, m := range list.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the list of models is empty")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
