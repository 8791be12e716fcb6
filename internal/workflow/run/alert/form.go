package alert

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"loki/internal/base/text"
	"loki/internal/workflow/run/webhook"
)

// Sender delivers alerts that no request carries.
type Sender struct {
	Mail    func(ctx context.Context, to, subject, body string) error
	Command func(ctx context.Context, command string, alert []byte, text string) error
}

// most is how many characters a message of Discord has.
const most = 2000

// Form returns what an address of a form gets. It is for [webhook.Options.Form].
func (s Sender) Form(ctx context.Context, h webhook.Hook, n webhook.Notice) (m webhook.Message, err error) {
	doc, err := json.Marshal(n.Data) // of a notice that was kept, it is a mapping
	if err != nil {
		return m, err
	}
	var a Alert
	if err := json.Unmarshal(doc, &a); err != nil {
		return m, err
	}
	m.URL = h.URL
	var body any
	switch h.Form {
	case Slack:
		body = map[string]string{"text": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(a.Text)}
	case Discord:
		body = map[string]any{"content": text.Cut(a.Text, most), "allowed_mentions": map[string]any{"parse": []string{}}}
	case Teams:
		card := map[string]any{"type": "AdaptiveCard", "version": "1.4", "body": []any{map[string]any{"type": "TextBlock", "text": a.Text, "wrap": true}}}
		body = map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
	case Ntfy:
		u, err := url.Parse(h.URL)
		if err != nil || strings.Trim(u.Path, "/") == "" {
			return m, errors.New("an address of ntfy ends with a topic")
		}
		topic := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
		u.Path = strings.TrimSuffix(u.Path, topic)
		m.URL = u.String()
		push := map[string]any{"topic": topic, "title": title(a), "message": a.Text, "priority": 4, "tags": []string{"warning"}}
		if a.Link != "" {
			push["click"] = a.Link
		}
		body = push
	case Mail:
		return m, s.Mail(ctx, h.URL, title(a), a.Text)
	case Command:
		return m, s.Command(ctx, h.URL, doc, a.Text)
	default:
		return m, errors.New("the form " + h.Form + " is not known")
	}
	m.Body, err = json.Marshal(body)
	return m, err
}

// title returns a line that says what an alert is about.
func title(a Alert) string {
	return "loki: " + strings.ReplaceAll(string(a.Kind), "_", " ")
}
