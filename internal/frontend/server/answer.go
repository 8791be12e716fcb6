package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/event"
	"loki/internal/service/auth/audit"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/run/webhook"
)

// answerPage serves the links with which a question is answered once, without a key: a page that shows
// the question and takes the answer, with neither script nor style.
type answerPage struct{ runs app.Hosted }

// answerPath begins the paths of the links. A token follows.
const answerPath = "/answer/"

// maxAnswer is the length of a form with an answer, in bytes.
const maxAnswer = 256 << 10

// answerView is what the page shows.
type answerView struct {
	Title    string
	Error    string
	Question *run.Pending // nil for one that cannot be answered
	Free     bool         // a text of the user's own is an answer
}

// html returns the page. It is written by hand because the template libraries keep the linker from dropping
// methods, which costs 15 MB.
func (v answerView) html() []byte {
	var b bytes.Buffer
	write := func(format string, texts ...string) {
		escaped := make([]any, len(texts))
		for i, text := range texts {
			escaped[i] = html.EscapeString(text)
		}
		fmt.Fprintf(&b, format+"\n", escaped...)
	}
	write(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><title>%[1]s</title></head>
<body><main><h1>%[1]s</h1>`, v.Title)
	if v.Error != "" {
		write(`<p role="alert"><strong>%s</strong></p>`, v.Error)
	}
	if q := v.Question; q != nil {
		write(`<pre>%s</pre>`, q.Text)
		label := "Answer"
		if len(q.Options) > 0 {
			label = "Another answer"
			v.writeOptions(write)
		}
		if v.Free {
			text := ""
			if q.Default != nil {
				text = *q.Default
			}
			if q.Rule != "" {
				write(`<p>The answer must satisfy <code>%s</code>.</p>`, q.Rule)
			}
			write(`<form method="post"><p><label>%s<br>`, label)
			if q.Kind == "secret" {
				write(`<input name="answer" type="password" autocomplete="off">`)
			} else {
				write(`<textarea name="answer" rows="4" cols="40">%s</textarea>`, text)
			}
			write(`</label></p><p><button>Answer</button></p></form>`)
		}
	}
	write(`</main></body></html>`)
	return b.Bytes()
}

// writeOptions writes the form of a question with options.
func (v answerView) writeOptions(write func(format string, texts ...string)) {
	if !v.Question.Multi {
		write(`<form method="post"><fieldset><legend>Choose</legend>`)
		for _, option := range v.Question.Options {
			write(`<p><button name="answer" value="%[1]s">%[1]s</button></p>`, option)
		}
		write(`</fieldset></form>`)
		return
	}
	write(`<form method="post"><fieldset><legend>Choose any number of them</legend>`)
	for _, option := range v.Question.Options {
		write(`<p><label><input type="checkbox" name="option" value="%[1]s"> %[1]s</label></p>`, option)
	}
	write(`<p><button name="multi" value="yes">Answer</button></p></fieldset></form>`)
}

// ServeHTTP implements [http.Handler].
func (p answerPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, HEAD, POST")
		showAnswer(w, http.StatusMethodNotAllowed, answerView{Title: "This link is opened in a browser"})
		return
	}
	link, err := p.runs.Links.Read(r.PathValue("token"))
	if err != nil {
		showAnswer(w, http.StatusNotFound, answerView{Title: "This link is not valid or has expired"})
		return
	}
	info, q, waits, err := p.question(r.Context(), link)
	switch {
	case err != nil:
		showAnswer(w, http.StatusInternalServerError, answerView{Title: "The question cannot be read now", Error: "Try again later."})
		return
	case !waits:
		showAnswer(w, http.StatusGone, gone)
		return
	}
	v := answerView{Title: "A question from " + info.Agent + ", run " + link.Run, Question: &q, Free: q.Open || len(q.Options) == 0}
	if r.Method != http.MethodPost {
		showAnswer(w, http.StatusOK, v)
		return
	}
	if err := new(http.CrossOriginProtection).Check(r); err != nil {
		v.Error = "The answer comes from a page of another site, and was not used."
		showAnswer(w, http.StatusForbidden, v)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxAnswer)
	if err := r.ParseForm(); err != nil {
		v.Error = "The answer is too long, or not that of this page."
		showAnswer(w, http.StatusBadRequest, v)
		return
	}
	answer, ok := formAnswer(q, r.PostForm)
	if !ok {
		v.Error = "Nothing was answered: choose an answer, or write one."
		showAnswer(w, http.StatusBadRequest, v)
		return
	}
	later, err := p.runs.Runs.Answer(r.Context(), link.Run, manager.Answers{Texts: map[string]string{link.Question: answer}, From: run.Reply{Via: event.ViaLink}})
	if err == nil {
		rest.Acts(r.Context(), audit.RunAnswer)
		rest.AboutRun(r.Context(), link.Run)
	}
	switch {
	case later:
		showAnswer(w, http.StatusAccepted, answerView{Title: "Thank you: the run resumes when its other work is done"})
	case err == nil:
		showAnswer(w, http.StatusOK, answerView{Title: "Thank you: the run resumes"})
	case p.isGone(r.Context(), link): // another answer was faster
		showAnswer(w, http.StatusGone, gone)
	case errors.Is(err, webhook.ErrLink) || fault.CodeOf(err) == fault.Usage:
		v.Error = err.Error()
		showAnswer(w, http.StatusBadRequest, v)
	default:
		v.Error = "The run cannot resume now, and the answer was not used: " + err.Error()
		showAnswer(w, http.StatusConflict, v)
	}
}

// gone is the page of a question that does not wait any more.
var gone = answerView{Title: "The question is answered already, or its run is over"}

// question returns the run and the question of a link, and whether that waits for an answer.
func (p answerPage) question(ctx context.Context, link webhook.Link) (info run.Info, q run.Pending, waits bool, err error) {
	info, err = p.runs.Store.Info(ctx, link.Run)
	var waiting []run.Pending
	if err == nil && info.Status != run.Canceled {
		waiting, err = p.runs.Store.Pending(ctx, link.Run)
	}
	if fault.CodeOf(err) == fault.NotFound {
		err = nil
	}
	i := slices.IndexFunc(waiting, func(q run.Pending) bool { return q.ID == link.Question && q.Asked.UnixNano() == link.Asked })
	if err != nil || i < 0 {
		return info, q, false, err
	}
	return info, waiting[i], true, nil
}

// isGone reports whether the question of a link is known to wait no more.
func (p answerPage) isGone(ctx context.Context, link webhook.Link) bool {
	_, _, waits, err := p.question(ctx, link)
	return err == nil && !waits
}

// formAnswer returns the answer in a form of the page: one field answer, or multi with any number of options. An
// answer without text is one only if the question's default or its rule says so.
func formAnswer(q run.Pending, form url.Values) (answer string, ok bool) {
	if q.Multi && form.Get("multi") == "yes" {
		delete(form, "multi")
		options := form["option"]
		delete(form, "option")
		return ask.JoinAnswers(options), len(form) == 0
	}
	if len(form) != 1 || len(form["answer"]) != 1 {
		return "", false
	}
	answer = form.Get("answer")
	empty := q.Rule != "" || q.Default != nil && *q.Default == "" // whether the rule holds is seen later
	return answer, empty || strings.TrimSpace(answer) != ""
}

// showAnswer sends the page.
func showAnswer(w http.ResponseWriter, status int, v answerView) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // the address is the permission; without any the form has no origin
	w.WriteHeader(status)
	_, _ = w.Write(v.html())
}
