package builtin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"loki/internal/base/text"
	"loki/internal/tool"
)

type twilioArgs struct {
	To      string `json:"to_number"`
	Message string `json:"message"`
}

func (b *base) sendTwilio() tool.Tool {
	params := []param{
		{name: "to_number", kind: "string", description: "The recipient's phone number, such as +15551234567. Use whatsapp:+15551234567 for WhatsApp."},
		{name: "message", kind: "string", description: "The text of the message."},
	}
	return &guardedTool{
		native: native{
			name:        "send_twilio",
			description: "Send an SMS, or a WhatsApp message, using Twilio.",
			params:      params,
			hints:       tool.Hints{Destructive: true, Timeout: serviceTimeout},
			run:         function(params, b.twilio),
		},
		consent: consent(params, func(args twilioArgs) (string, error) {
			return fmt.Sprintf("Send this message to %s?\n\n%s", text.Visible(args.To), indent(args.Message)), nil
		}),
	}
}

// twilio sends a message.
func (b *base) twilio(ctx context.Context, args twilioArgs, call tool.Call) (string, error) {
	keys, err := b.need("TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_FROM_NUMBER")
	if err != nil {
		return "", err
	}
	account, token, from := keys[0], keys[1], keys[2]
	to := strings.TrimSpace(args.To)
	switch {
	case strings.HasPrefix(to, "whatsapp:"):
		from = "whatsapp:" + strings.TrimPrefix(from, "whatsapp:")
	case !strings.HasPrefix(to, "+"):
		to = "+" + to
	}
	r := request{
		service: "Twilio",
		method:  "POST",
		url:     cmp.Or(b.Services.Twilio, "https://api.twilio.com") + "/2010-04-01/Accounts/" + url.PathEscape(account) + "/Messages.json",
		header:  map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(account+":"+token))},
		form:    url.Values{"From": {from}, "To": {to}, "Body": {args.Message}}.Encode(),
		secrets: []string{token},
	}
	if key := once(call); key != "" {
		r.header["Idempotency-Key"] = key
	}
	data, err := b.do(ctx, r)
	if err != nil {
		return "", err
	}
	var sent struct {
		SID string `json:"sid"`
	}
	if json.Unmarshal(data, &sent) != nil || sent.SID == "" {
		return "", errors.New("Twilio did not accept the message" + complaint(data))
	}
	return fmt.Sprintf("the message to %s was sent (%s)", to, sent.SID), nil
}
