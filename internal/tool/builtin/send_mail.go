package builtin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/url"
	"strings"
	"time"

	"loki/internal/tool"
)

type mailArgs struct {
	Recipient string `json:"recipient"`
	Subject   string `json:"subject"`
	Body      string `json:"body"`
}

func (b *base) sendMail() tool.Tool {
	params := []param{
		{name: "recipient", kind: "string", description: "The address of the recipient; several with commas between them."},
		{name: "subject", kind: "string", description: "The subject."},
		{name: "body", kind: "string", description: "The body, plain text."},
	}
	return &guardedTool{
		native: native{
			name:        "send_mail",
			description: "Send an email from the user's account.",
			params:      params,
			hints:       tool.Hints{Destructive: true, Timeout: serviceTimeout},
			run: function(params, func(ctx context.Context, args mailArgs, call tool.Call) (string, error) {
				err := b.mail(ctx, args, call)
				switch {
				case err == nil:
					return "the email to " + args.Recipient + " was sent", nil
				case ctx.Err() != nil:
					return "", context.Cause(ctx)
				}
				return "", err
			}),
		},
		consent: consent(params, func(args mailArgs) (string, error) {
			return "Send this email?\n\n" + indent(fmt.Sprintf("To: %s\nSubject: %s\n\n%s", args.Recipient, args.Subject, args.Body)), nil
		}),
	}
}

// mailServer is the server that sends mails.
type mailServer struct {
	host, port string
	implicit   bool // TLS from the first byte; otherwise STARTTLS is required
}

// parseMailServer reads smtps://host:465, smtp://host:587, or host:port, where port 465
// means implicit TLS.
func parseMailServer(addr string) (mailServer, error) {
	s := mailServer{}
	text := addr
	if !strings.Contains(text, "://") {
		text = "//" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "" && u.Scheme != "smtp" && u.Scheme != "smtps" {
		return s, errors.New("EMAIL_SMTP_ADDR, which the user has set, is not the address of a mail server, such as smtps://smtp.example.com:465")
	}
	s.host, s.port = u.Hostname(), u.Port()
	s.implicit = u.Scheme == "smtps" || u.Scheme == "" && s.port == "465"
	if s.port == "" {
		s.port = "587"
		if s.implicit {
			s.port = "465"
		}
	}
	return s, nil
}

// mail sends a mail through the user's server.
func (b *base) mail(ctx context.Context, args mailArgs, call tool.Call) error {
	keys, err := b.need("EMAIL_SMTP_ADDR", "EMAIL_SMTP_USER", "EMAIL_SMTP_PASS")
	if err != nil {
		return err
	}
	server, err := parseMailServer(keys[0])
	if err != nil {
		return err
	}
	user, _, _ := strings.Cut(keys[1], "@")
	from := &mail.Address{Name: cmp.Or(b.Getenv("EMAIL_SENDER_NAME"), user), Address: keys[1]}
	to, err := mail.ParseAddressList(args.Recipient)
	if err != nil {
		return fmt.Errorf("the recipient %q is not an email address", args.Recipient)
	}
	message, err := b.compose(from, to, args, call, server.host)
	if err != nil {
		return err
	}
	client, err := b.connect(ctx, server)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Auth(smtp.PlainAuth("", keys[1], keys[2], server.host)); err != nil {
		return fmt.Errorf("the mail server does not accept EMAIL_SMTP_USER and EMAIL_SMTP_PASS: %w", err)
	}
	if err := client.Mail(from.Address); err != nil {
		return fmt.Errorf("the mail server does not accept the sender %s: %w", from.Address, err)
	}
	for _, r := range to {
		if err := client.Rcpt(r.Address); err != nil {
			return fmt.Errorf("the mail server does not accept the recipient %s: %w", r.Address, err)
		}
	}
	w, err := client.Data()
	if err == nil {
		_, err = w.Write(message)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return fmt.Errorf("the mail server does not accept the mail: %w", err)
	}
	_ = client.Quit() // the mail is accepted; an error at the end does not matter
	return nil
}

// connect returns a client whose connection is encrypted and is closed when ctx
// ends.
func (b *base) connect(ctx context.Context, server mailServer) (*smtp.Client, error) {
	config := &tls.Config{}
	if b.TLS != nil {
		config = b.TLS.Clone()
	}
	config.ServerName = server.host
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(server.host, server.port))
	if err != nil {
		return nil, fmt.Errorf("connecting to the mail server: %w", err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // without a deadline it still ends with ctx
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	conn = &watchedConn{conn, stop}
	if server.implicit {
		conn = tls.Client(conn, config)
	}
	client, err := smtp.NewClient(conn, server.host)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("talking to the mail server: %w", err)
	}
	if !server.implicit {
		if ok, _ := client.Extension("STARTTLS"); !ok {
			client.Close()
			return nil, errors.New("the mail server offers no encryption, so nothing was sent")
		}
		if err := client.StartTLS(config); err != nil {
			client.Close()
			return nil, fmt.Errorf("encrypting the connection to the mail server: %w", err)
		}
	}
	return client, nil
}

// watchedConn is a connection that a context closes, until it is closed.
type watchedConn struct {
	net.Conn
	stop func() bool
}

func (w *watchedConn) Close() error {
	w.stop()
	return w.Conn.Close()
}

// compose writes a mail. A repeated call gives it the same id, so that servers and
// readers can recognize a mail that was sent twice.
func (b *base) compose(from *mail.Address, to []*mail.Address, args mailArgs, call tool.Call, host string) ([]byte, error) {
	names := make([]string, len(to))
	for i, a := range to {
		names[i] = a.String()
	}
	subject := strings.Join(strings.Fields(args.Subject), " ") // a line break would begin another header
	id := cmp.Or(once(call), rand.Text())
	_, domain, found := strings.Cut(from.Address, "@")
	if !found {
		domain = host
	}
	var out bytes.Buffer
	for _, h := range [][2]string{
		{"From", from.String()},
		{"To", strings.Join(names, ", ")},
		{"Subject", mime.QEncoding.Encode("utf-8", subject)},
		{"Date", b.Now().Format(time.RFC1123Z)},
		{"Message-ID", "<" + id + "@" + domain + ">"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		if strings.ContainsAny(h[1], "\r\n") && h[0] != "Subject" {
			return nil, fmt.Errorf("the %s of the mail has a line break", strings.ToLower(h[0]))
		}
		fmt.Fprintf(&out, "%s: %s\r\n", h[0], h[1])
	}
	out.WriteString("\r\n")
	w := quotedprintable.NewWriter(&out)
	_, err := w.Write([]byte(args.Body))
	err = errors.Join(err, w.Close()) // Close writes the end of the text
	return out.Bytes(), err
}
