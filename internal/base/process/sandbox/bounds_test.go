package sandbox_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/process/sandbox"
)

func TestBounds(t *testing.T) {
	network := func(hosts ...string) sandbox.Declaration {
		return sandbox.Declaration{Level: sandbox.Network, Hosts: hosts}
	}
	for _, tt := range []struct {
		name           string
		bounds         sandbox.Bounds
		declared, want sandbox.Declaration
	}{
		{name: "nothing", want: sandbox.Declaration{Level: sandbox.Write}},
		{name: "declared", declared: sandbox.Declaration{Level: sandbox.Full}, want: sandbox.Declaration{Level: sandbox.Full}},
		{name: "default", bounds: sandbox.Bounds{Default: network("a.com")}, want: network("a.com")},
		{
			name: "lowered", bounds: sandbox.Bounds{Most: sandbox.Declaration{Level: sandbox.Read}},
			declared: sandbox.Declaration{Level: sandbox.Network, Hosts: []string{"a.com"}, Write: []string{"/w"}, Read: []string{"/r"}},
			want:     sandbox.Declaration{Level: sandbox.Read, Read: []string{"/r"}},
		},
		{name: "hosts", bounds: sandbox.Bounds{Most: network("*.a.com", "b.com", "c.com:8080")}, declared: network("x.a.com", "*.y.a.com", "a.com", "b.com:443", "b.com:81", "c.com:8080", "c.com"), want: network("x.a.com", "*.y.a.com", "b.com:443", "c.com:8080")},
		{name: "full_within_hosts", bounds: sandbox.Bounds{Most: network("a.com")}, declared: sandbox.Declaration{Level: sandbox.Full}, want: network("a.com")},
		{
			name: "untrusted", bounds: sandbox.Bounds{Most: sandbox.Declaration{Level: sandbox.Read}, Untrusted: true},
			declared: sandbox.Declaration{Level: sandbox.Write, Read: []string{"~/.ssh"}}, want: sandbox.Declaration{Level: sandbox.Read},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.bounds.Of(tt.declared)
			if len(got.Hosts) == 0 {
				got.Hosts = nil
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestParseDeclaration(t *testing.T) {
	for _, tt := range []struct{ text, want, wantErr string }{
		{text: "read", want: "read"},
		{text: "network example.com *.example.com:8080", want: "network (example.com, *.example.com:8080)"},
		{text: "network", want: "network"},
		{text: "", wantErr: "needs one of read, write, network, full"},
		{text: "all", wantErr: `found "all"`},
		{text: "write example.com", wantErr: "hosts need @sandbox network"},
		{text: "network a*.com", wantErr: "not the name of a host"},
		{text: "network https://example.com/x", wantErr: `"https://example.com/x" is an address: a host is its name only, such as example.com`},
		{text: "network 2001:db8::1", wantErr: "is an address of IPv6, which cannot be a host here"},
		{text: "network a:b", wantErr: "has no port behind its colon"},
		{text: "network a;b", wantErr: "not the name of a host"},
	} {
		got, err := sandbox.ParseDeclaration(strings.Fields(tt.text))
		if tt.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%q: %v", tt.text, err)
			}
		} else if err != nil || got.String() != tt.want {
			t.Errorf("%q: %s, %v", tt.text, got, err)
		}
	}
}

func TestNote(t *testing.T) {
	d := sandbox.Declaration{Level: sandbox.Write}
	remedy := func(needed sandbox.Declaration) string { return "declare " + needed.YAML() + " or " + needed.Comment() }
	for _, tt := range []struct {
		name    string
		stopped []sandbox.Refusal
		want    string
	}{
		{name: "nothing"},
		{
			name:    "full",
			stopped: []sandbox.Refusal{{Access: sandbox.Reading, What: "~/.ssh/id_rsa", Reason: "it has keys"}},
			want:    "the sandbox stopped it at level write: it reads ~/.ssh/id_rsa (it has keys); declare full or @sandbox full",
		},
		{
			name:    "a_rule",
			stopped: []sandbox.Refusal{{Access: sandbox.Reading, What: ".env", Reason: "a rule denies it"}},
			want:    "the sandbox stopped it at level write: it reads .env (a rule denies it)",
		},
		{
			name:    "many",
			stopped: slices.Repeat([]sandbox.Refusal{{Access: sandbox.Writing, What: "x", Level: sandbox.Full}}, 18),
			want:    "the sandbox stopped it at level write: it " + strings.Repeat("writes x, ", 15) + "writes x and 2 more; declare full or @sandbox full",
		},
		{
			name:    "network",
			stopped: []sandbox.Refusal{{Access: sandbox.Connecting, What: "a.com:443", Level: sandbox.Network}, {Access: sandbox.Connecting, What: "b.com:81", Level: sandbox.Network}},
			want:    `the sandbox stopped it at level write: it connects to a.com:443, connects to b.com:81; declare {level: network, hosts: [a.com, "b.com:81"]} or @sandbox network a.com b.com:81`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := d.Note(tt.stopped, remedy); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestStartsProgram(t *testing.T) {
	for text, want := range map[string]bool{
		"#!/bin/sh\nx=$(loki -q -a ./a b)\n":              true,
		"\"${LOKI_EXECUTABLE:-loki}\" -q\n":               true,
		"subprocess.run(['loki', '-q'])\n":                true,
		"loki \"$prompt\"":                                true,
		"main() { /opt/bin/loki hi; }":                    true,
		"run([\"/opt/loki\", \"hi\"])":                    true,
		"# loki -a x\n":                                   false,
		"eval \"$(loki --argc-eval \"$0\" \"$@\")\"\n":    false,
		"echo \"restore it with: loki --install agents\"": false,
		"echo loki\n":                                     false,
		"mkdir ~/.config/loki -p\n":                       false,
	} {
		if sandbox.StartsProgram([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
