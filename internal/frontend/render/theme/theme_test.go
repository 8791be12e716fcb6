package theme_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/frontend/render/theme"
)

const sample = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>name</key><string>Sample &amp; Co</string>
	<key>uuid</key><integer>1</integer><key>semantic</key><true/>
	<key>settings</key>
	<array>
		<dict><key>settings</key><dict>
			<key>background</key><string>#000000</string>
			<key>foreground</key><string>#eeeeee</string>
		</dict></dict>
		<dict><key>scope</key><string>comment, punctuation.definition.comment</string>
			<key>settings</key><dict><key>foreground</key><string>#ffffff80</string><key>fontStyle</key><string>italic</string></dict></dict>
		<dict><key>scope</key><string>keyword</string><key>settings</key><dict><key>foreground</key><string>#f00</string></dict></dict>
		<dict><key>scope</key><string>keyword.operator</string><key>settings</key><dict><key>foreground</key><string>#00ff00</string></dict></dict>
		<dict><key>scope</key><string>keyword.control</string><key>settings</key><dict><key>fontStyle</key><string>bold underline</string></dict></dict>
		<dict><key>scope</key><string>source string, text markup.raw</string><key>settings</key><dict><key>foreground</key><string>#0000FF</string></dict></dict>
		<dict><key>scope</key><string>string - string.regexp</string><key>settings</key><dict><key>fontStyle</key><string>italic</string></dict></dict>
		<dict><key>scope</key><string>constant</string><key>settings</key><dict><key>foreground</key><string>#111111</string></dict></dict>
		<dict><key>scope</key><string>constant</string><key>settings</key><dict><key>foreground</key><string>#222222</string></dict></dict>
		<dict><key>scope</key><string>bad</string><key>settings</key><dict><key>foreground</key><string>nonsense</string></dict></dict>
		<dict><key>scope</key><string>source</string><key>settings</key><dict><key>foreground</key><string>#dddddd</string></dict></dict>
	</array>
</dict>
</plist>`

func TestStyle(t *testing.T) {
	th, err := theme.Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	if th.Name() != "Sample & Co" || th.Foreground() == nil || *th.Foreground() != (theme.Color{R: 0xee, G: 0xee, B: 0xee}) {
		t.Errorf("name %q, foreground %v", th.Name(), th.Foreground())
	}
	for _, tt := range []struct{ name, within, scopes, want string }{
		{"nothing", "text", "unheard.of", "38;2;238;238;238"},
		{"blended", "text", "comment.line", "3;38;2;128;128;128"},
		{"second_of_a_list", "text", "punctuation.definition.comment", "3;38;2;128;128;128"},
		{"shorthand", "text", "keyword", "38;2;255;0;0"},
		{"more_particular", "text", "keyword.operator.word", "38;2;0;255;0"},
		{"font_of_one_colour_of_other", "text", "keyword.control.import", "1;4;38;2;255;0;0"},
		{"no_part_of_a_word", "text", "keywords", "38;2;238;238;238"},
		{"within", "source", "string.quoted", "3;38;2;0;0;255"},
		{"not_within", "text", "string.quoted", "3;38;2;238;238;238"},
		{"excluded", "source", "string.regexp", "38;2;0;0;255"},
		{"later_wins", "text", "constant", "38;2;34;34;34"},
		{"second_choice", "text", "unheard.of keyword", "38;2;255;0;0"},
		{"color_not_understood", "text", "bad", "38;2;238;238;238"},
		{"around", "source", "keyword.unknown", "38;2;255;0;0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := th.Style(tt.within, tt.scopes).Parameters(true); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestIndex(t *testing.T) {
	for _, tt := range []struct {
		c    theme.Color
		want int
	}{
		{theme.Color{}, 16},
		{theme.Color{R: 255}, 196},
		{theme.Color{R: 95, G: 135, B: 175}, 67},
		{theme.Color{R: 128, G: 128, B: 128}, 244},
		{theme.Color{R: 8, G: 8, B: 8}, 232},
		{theme.Color{R: 255, G: 255, B: 255}, 252},
		{theme.Color{R: 238, G: 238, B: 238}, 252},
		{theme.Color{R: 208, G: 208, B: 208}, 252},
		{theme.Color{R: 198, G: 198, B: 198}, 251},
		{theme.Color{R: 250, G: 130, B: 5}, 208},
	} {
		if got := tt.c.Index(); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.c, got, tt.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", "the file ends too early"},
		{"json", `{"name": "x"}`, "no TextMate theme"},
		{"html", "<html><body></body></html>", "begins with <html>"},
		{"cut", sample[:400], "no TextMate theme"},
		{"unclosed", "<plist><dict><key>a</key><string>x</dict></plist>", "line 1"},
		{"no_value", "<plist><dict>\n<key>a</key></dict></plist>", `line 2: key "a" has no value`},
		{"no_key", "<plist><dict>\n\n<string>a</string></dict></plist>", "line 3: <string> where a <key> is expected"},
		{"no_settings", "<plist><dict><key>name</key><string>x</string></dict></plist>", "no array of settings"},
		{"unknown_element", "<plist><table/></plist>", "<table> is not part"},
		{"deep", "<plist>" + strings.Repeat("<array>", 100), "nested too deeply"},
		{"entity", `<!DOCTYPE x [<!ENTITY a "b">]><plist><string>&a;</string></plist>`, "entity"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := theme.Parse([]byte(tt.in))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dark.tmTheme")
	if _, err := theme.Load(file); !os.IsNotExist(err) {
		t.Errorf("no file: got %v", err)
	}
	for _, light := range []bool{true, false} {
		want := theme.Dark()
		if light {
			want = theme.Light()
		}
		if th, err := theme.Open(file, light); err != nil || th != want {
			t.Errorf("no file, light %v: got %v, %v", light, th, err)
		}
	}
	if err := os.WriteFile(file, []byte("no theme"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := theme.Load(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names %s", err, file)
	}
	if err := os.WriteFile(file, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	if th, err := theme.Open(file, true); err != nil || th.Name() != "Sample & Co" {
		t.Errorf("got %v, %v", th, err)
	}
}

// TestBuiltIn checks that the themes of ours say something about everything that is drawn
// by scope, and leave text to the terminal.
func TestBuiltIn(t *testing.T) {
	for _, th := range []*theme.Theme{theme.Dark(), theme.Light()} {
		if th.Foreground() != nil {
			t.Errorf("%s has a foreground", th.Name())
		}
		for _, scope := range []string{
			"comment", "string", "constant.numeric", "keyword", "storage.type", "entity.name.function", "entity.name.tag", "markup.heading.1",
			"markup.raw.inline", "markup.underline.link", "markup.quote", "markup.list", "markup.inserted", "markup.deleted", "markup.math",
		} {
			if th.Style("text", scope).Parameters(false) == "" {
				t.Errorf("%s has no style for %s", th.Name(), scope)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("<plist><dict><key>settings</key><array><dict/><true/><string>x</string></array></dict></plist>"))
	f.Add([]byte("<plist><dict><key>settings</key><array><dict><key>scope</key><string>- a,(b c) | &amp; d</string><key>settings</key><dict><key>fontStyle</key><string/></dict></dict></array></dict></plist>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		th, err := theme.Parse(data)
		if err != nil {
			return
		}
		for _, trueColor := range []bool{true, false} {
			if p := th.Style("source", "keyword.control a.b").Parameters(trueColor); strings.Trim(p, "0123456789;") != "" {
				t.Errorf("parameters %q", p)
			}
		}
	})
}
