package builtin_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"loki/internal/base/process/environ"
	"loki/internal/tool/builtin"
)

// mailbox is a mail server that takes one mail after the other and keeps what it hears.
type mailbox struct {
	addr  string
	roots *x509.CertPool
	heard chan string // of one connection each
}

// newMailbox starts a server: with implicit TLS, with STARTTLS, or without either.
func newMailbox(t *testing.T, implicit, startTLS bool) *mailbox {
	t.Helper()
	// The certificate is one for 127.0.0.1 that package httptest has.
	web := httptest.NewTLSServer(nil)
	web.Close()
	config := &tls.Config{Certificates: web.TLS.Certificates}
	m := &mailbox{roots: x509.NewCertPool(), heard: make(chan string, 16)}
	m.roots.AddCert(web.Certificate())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.addr = l.Addr().String()
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() { // ends with the listener
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if implicit {
				conn = tls.Server(conn, config)
			}
			m.serve(conn, config, startTLS)
		}
	}()
	return m
}

// serve speaks SMTP until the client is gone.
func (m *mailbox) serve(conn net.Conn, config *tls.Config, startTLS bool) {
	defer func() { conn.Close() }()
	var heard strings.Builder
	defer func() { m.heard <- heard.String() }()
	in := bufio.NewReader(conn)
	say := func(s string) { fmt.Fprint(conn, s+"\r\n") }
	say("220 mail")
	for data := false; ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		heard.WriteString(line)
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case data && word == ".":
			data = false
			say("250 kept")
		case data:
		case word == "EHLO" && startTLS:
			say("250-mail\r\n250 STARTTLS")
		case word == "EHLO":
			say("250-mail\r\n250 AUTH PLAIN")
		case word == "STARTTLS":
			say("220 go")
			conn = tls.Server(conn, config)
			in, startTLS = bufio.NewReader(conn), false
		case word == "AUTH":
			say("235 ok")
		case word == "RCPT" && strings.Contains(line, "nobody@"):
			say("550 no such person")
		case word == "DATA":
			data = true
			say("354 go on")
		case word == "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func TestSendMail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, scheme       string
		implicit, startTLS bool
	}{
		{"implicit", "smtps://", true, false},
		{"starttls", "smtp://", false, true},
		{"starttls_without_scheme", "", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			box := newMailbox(t, tt.implicit, tt.startTLS)
			o := mailOptions(box, tt.scheme)
			args := m{"recipient": "Ann <ann@example.com>, bob@example.com", "subject": "Grüße\r\nBcc: evil@example.com", "body": "Hello = you\n.\nend é"}
			text, failed, question := asks(t, o, "send_mail", args)
			if failed || text != `{"output":"the email to Ann <ann@example.com>, bob@example.com was sent"}` {
				t.Fatalf("got %s", text)
			}
			if want := "Send this email?\n\n    To: Ann <ann@example.com>, bob@example.com\n    Subject: Grüße\\u000d\n    Bcc: evil@example.com\n    \n    Hello = you\n    .\n    end é"; question != want {
				t.Errorf("asked %q, want %q", question, want)
			}
			heard := <-box.heard
			for _, want := range []string{
				"AUTH PLAIN AG1lQGV4YW1wbGUuY29tAHB3\r\n", "MAIL FROM:<me@example.com>", "RCPT TO:<ann@example.com>", "RCPT TO:<bob@example.com>",
				"From: \"me\" <me@example.com>\r\nTo: \"Ann\" <ann@example.com>, <bob@example.com>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe_Bcc:_evil@example.com?=\r\n" +
					"Date: Fri, 02 Jan 2026 03:04:05 +0000\r\nMessage-ID: <" + key + "@example.com>\r\n",
				"\r\n\r\nHello =3D you\r\n..\r\nend =C3=A9\r\n.\r\n",
			} {
				if !strings.Contains(heard, want) {
					t.Errorf("the server did not hear %q:\n%s", want, heard)
				}
			}
		})
	}
}

func mailOptions(box *mailbox, scheme string) builtin.Options {
	return builtin.Options{
		Child:  environ.Child{Environ: []string{}},
		TLS:    &tls.Config{RootCAs: box.roots},
		Now:    func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Getenv: env(map[string]string{"EMAIL_SMTP_ADDR": scheme + box.addr, "EMAIL_SMTP_USER": "me@example.com", "EMAIL_SMTP_PASS": "pw"}),
	}
}

func TestSendMailFailures(t *testing.T) {
	t.Parallel()
	plain, good := newMailbox(t, false, false), newMailbox(t, true, false)
	untrusted := mailOptions(good, "smtps://")
	untrusted.TLS = nil
	nonsense := mailOptions(good, "http://")
	for _, tt := range []struct {
		name      string
		o         builtin.Options
		recipient string
		want      string
	}{
		{"no_encryption", mailOptions(plain, "smtp://"), "ann@example.com", "offers no encryption"},
		{"untrusted", untrusted, "ann@example.com", "certificate"},
		{"no_server", nonsense, "ann@example.com", "EMAIL_SMTP_ADDR"},
		{"no_address", mailOptions(good, "smtps://"), "ann", "not an email address"},
		{"line_break", mailOptions(good, "smtps://"), "ann@example.com\r\nBcc: x@example.com", "not an email address"},
		{"no_such_person", mailOptions(good, "smtps://"), "nobody@example.com", "nobody@example.com: 550"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, failed, _ := asks(t, tt.o, "send_mail", m{"recipient": tt.recipient, "subject": "s", "body": "b"})
			if !failed || !strings.Contains(text, tt.want) {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
	if heard := <-plain.heard; strings.Contains(heard, "AUTH") {
		t.Errorf("the password was sent without encryption:\n%s", heard)
	}
}
