package server

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loki/internal/app"
	"loki/internal/ask"
	"loki/internal/fault"
	"loki/internal/run"
	"loki/internal/webhook"
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

var answerHTML = template.Must(template.New("answer").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><title>{{.Title}}</title></head>
<body><main><h1>{{.Title}}</h1>
{{if .Error}}<p role="alert"><strong>{{.Error}}</strong></p>{{end}}
{{with .Question}}<pre>{{.Text}}</pre>
{{if .Options}}<form method="post"><fieldset><legend>Choose{{if .Multi}} any number of them{{end}}</legend>
{{if .Multi}}{{range .Options}}<p><label><input type="checkbox" name="option" value="{{.}}"> {{.}}</label></p>
{{end}}<p><button name="multi" value="yes">Answer</button></p>{{else}}{{range .Options}}<p><button name="answer" value="{{.}}">{{.}}</button></p>
{{end}}{{end}}</fieldset></form>{{end}}
{{if $.Free}}<form method="post"><p><label>{{if .Options}}Another answer{{else}}Answer{{end}}<br>
<textarea name="answer" rows="4" cols="40">{{with .Default}}{{.}}{{end}}</textarea></label></p><p><button>Answer</button></p></form>{{end}}{{end}}
</main></body></html>
`))

// ServeHTTP implements [http.Handler].
func (p answerPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, HEAD, POST")
		showAnswer(w, http.StatusMethodNotAllowed, answerView{Title: "This link is opened in a browser"})
		return
	}
	link, err := p.runs.Links.Read(r.PathValue("token"))
	if err != nil {
		showAnswer(w, http.StatusNotFound, answerView{Title: "This link is not valid, or its time is over"})
		return
	}
	info, err := p.runs.Store.Info(r.Context(), link.Run)
	var waiting []run.Pending
	if err == nil && info.Status != run.Canceled {
		waiting, err = p.runs.Store.Pending(r.Context(), link.Run)
	}
	i := slices.IndexFunc(waiting, func(q run.Pending) bool { return q.ID == link.Question && q.Asked.UnixNano() == link.Asked })
	switch {
	case err != nil && fault.CodeOf(err) != fault.NotFound:
		showAnswer(w, http.StatusInternalServerError, answerView{Title: "The question cannot be read now", Error: "Try again later."})
		return
	case i < 0:
		showAnswer(w, http.StatusGone, answerView{Title: "The question is answered already, or its run is over"})
		return
	}
	q := waiting[i]
	v := answerView{Title: "A question from " + link.Run, Question: &q, Free: q.Open || len(q.Options) == 0}
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
	switch later, err := p.runs.Runs.Answer(r.Context(), link.Run, "", map[string]string{link.Question: answer}); {
	case later:
		showAnswer(w, http.StatusAccepted, answerView{Title: "Thank you: the run goes on when its other work is done"})
	case err == nil:
		showAnswer(w, http.StatusOK, answerView{Title: "Thank you: the run goes on"})
	case errors.Is(err, webhook.ErrLink) || fault.CodeOf(err) == fault.Usage:
		v.Error = err.Error()
		showAnswer(w, http.StatusBadRequest, v)
	default:
		v.Error = "The run does not go on now, and the answer was not used: " + err.Error()
		showAnswer(w, http.StatusConflict, v)
	}
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
	var page bytes.Buffer
	if err := answerHTML.Execute(&page, v); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // the address is the permission; without any the form has no origin
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes())
}
