package document_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/document"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestSamples reads documents that pandoc, openpyxl, odfpy and Chromium wrote.
func TestSamples(t *testing.T) {
	t.Parallel()
	samples, err := filepath.Glob("testdata/sample.*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range samples {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		n++
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := document.Text(t.Context(), strings.TrimPrefix(filepath.Ext(file), "."), data)
			if err != nil {
				t.Fatal(err)
			}
			got := c.Ext + "\n" + c.Text
			if *update {
				if err := os.WriteFile(file+".golden", []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file + ".golden")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if n < 8 {
		t.Errorf("only %d samples", n)
	}
}

func words(s string) map[string]int {
	count := make(map[string]int)
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		count[w]++
	}
	return count
}

// TestAgainstPandoc has pandoc write a page in several formats, and counts the words that are read.
func TestAgainstPandoc(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("pandoc"); err != nil {
		t.Skip("pandoc is not installed")
	}
	const page = "../../../docs/vault.md"
	plain, err := exec.CommandContext(t.Context(), "pandoc", "--to=plain", "--wrap=none", page).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := words(string(plain))
	for _, kind := range []string{"docx", "odt", "epub", "rtf", "pptx"} {
		file := filepath.Join(t.TempDir(), "page."+kind)
		if out, err := exec.CommandContext(t.Context(), "pandoc", "-s", "--metadata=title:T", page, "-o", file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := document.Text(t.Context(), kind, data)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		got := words(c.Text)
		all, found := 0, 0
		var lost []string
		for w, n := range want {
			all += n
			found += min(n, got[w])
			if n > got[w] {
				lost = append(lost, w)
			}
		}
		t.Logf("%s: %d of %d words", kind, found, all)
		if float64(found) < 0.995*float64(all) {
			t.Errorf("%s: %d of %d words were read, not %q", kind, found, all, lost[:min(10, len(lost))])
		}
	}
}

func archive(t testing.TB, files map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, want string }{
		{"runs", "<w:p><w:r><w:t>a</w:t></w:r><w:r><w:tab/><w:t xml:space='preserve'>b </w:t></w:r><w:t>c</w:t></w:p>", "a b c"},
		{"deleted", "<w:p><w:t>kept</w:t><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:ins><w:t> new</w:t></w:ins></w:p>", "kept new"},
		{"localized_heading", "<w:p><w:pPr><w:pStyle w:val='berschrift2'/></w:pPr><w:t>Titel</w:t></w:p><w:p><w:t>Text</w:t></w:p>", "## Titel\n\nText"},
		{"box_once", "<w:p><mc:AlternateContent><mc:Choice><w:t>box</w:t></mc:Choice><mc:Fallback><w:t>box</w:t></mc:Fallback></mc:AlternateContent></w:p>", "box"},
		{"fields", "<w:p><w:instrText>PAGE</w:instrText><w:t>text</w:t></w:p>", "text"},
		{
			"table_in_table",
			"<w:tbl><w:tr><w:tc><w:p><w:t>a|b</w:t></w:p><w:tbl><w:tr><w:tc><w:p><w:t>in</w:t></w:p></w:tc></w:tr></w:tbl></w:tc><w:tc><w:p/></w:tc><w:tc><w:p><w:t>c</w:t></w:p></w:tc></w:tr></w:tbl>",
			"| a\\|b in |  | c |\n|---|---|---|",
		},
		{"only_pictures", "<w:p><w:drawing/></w:p>", "error: it holds no text; if its pages are pictures, a program for text recognition such as ocrmypdf can add it"},
	} {
		data := archive(t, map[string]string{
			"word/document.xml": "<w:document xmlns:w='w' xmlns:mc='mc'><w:body>" + tt.body + "</w:body></w:document>",
			"word/styles.xml":   "<w:styles xmlns:w='w'><w:style w:styleId='berschrift2'><w:name w:val='heading 2'/></w:style></w:styles>",
		})
		c, err := document.Text(t.Context(), "docx", data)
		got := c.Text
		if err != nil {
			got = "error: " + err.Error()
		}
		if strings.TrimSpace(got) != tt.want {
			t.Errorf("%s: %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestRTF(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\f0 caf\'e9 \b bold\b0\par second}`: "café bold\n\nsecond",
		`{\rtf1\uc1 \u8364?5 \u-10179?\u-8704? {\*\generator x;}a\~b\_c\{d\}}`:            "€5 😀 a\u00a0b-c{d}",
		`{\rtf1\ansicpg1251 \'cf\'f0{\pict 0102}\bin3 }}}x}`:                              "Прx",
		`{\rtf1 a\u1234`: "aӒ",
	} {
		if c, err := document.Text(t.Context(), "rtf", []byte(in)); err != nil || strings.TrimSpace(c.Text) != want {
			t.Errorf("%s: %q, %v", in, c.Text, err)
		}
	}
}

func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	deep := archive(t, map[string]string{"content.xml": strings.Repeat("<a>", 100000)})
	for _, tt := range []struct {
		kind string
		data []byte
		want string
	}{
		{"odt", deep, "too deep in each other"},
		{"docx", []byte("no archive"), "malformed, or protected by a password"},
		{"xlsx", archive(t, nil), "it has no xl/workbook.xml"},
		{"epub", archive(t, map[string]string{"META-INF/container.xml": "<x/>"}), "it has no "},
		{"rtf", []byte("text"), "not an RTF document"},
		{"rtf", []byte(`{\rtf` + strings.Repeat("{", 5000)), "too deep in each other"},
		{"pdf", []byte("text"), "it has no pages"},
		{"doc", nil, "documents of type doc cannot be read"},
	} {
		if _, err := document.Text(t.Context(), tt.kind, tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.kind, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := document.Text(ctx, "odt", deep); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	const page = `<html><head><title>t</title><style>s</style></head><body><nav>menu</nav><h1>Hi</h1><script>x</script><p>a <a href="/b">b</a><table><tr><th>x</th></tr><tr><td>1</td></tr></table></body></html>`
	if got := document.Markdown(page, "https://x.test/d/"); got != "# Hi\n\na [b](https://x.test/b)\n\n| x |\n|---|\n| 1 |" {
		t.Errorf("%q", got)
	}
	if got := document.Markdown("plain", ""); got != "plain" {
		t.Errorf("%q", got)
	}
}

func FuzzText(f *testing.F) {
	for _, kind := range []string{"docx", "pptx", "xlsx", "odt", "ods", "epub", "rtf"} {
		data, err := os.ReadFile("testdata/sample." + kind)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(kind, data)
	}
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		c, err := document.Text(t.Context(), kind, data)
		if err == nil && (c.Text == "" || c.Ext == "") {
			t.Error("neither text nor an error")
		}
		if err != nil && strings.Contains(err.Error(), "runtime error") {
			t.Error(err)
		}
	})
}

// FuzzXML gives the parts of documents to their readers, which a fuzzer cannot do through an archive.
func FuzzXML(f *testing.F) {
	f.Add("<w:p xmlns:w='w'><w:pStyle w:val='a'/><w:t>x</w:t></w:p><tbl><tr><tc/></tr></tbl>", "<style styleId='a'><name val='heading 3'/></style>")
	f.Add("<sheet name='a' r:id='1' xmlns:r='r'/>", "<row><c r='ZZ9' t='s'><v>0</v></c></row>")
	f.Add("<table:table table:name='a'><table-row><table-cell number-columns-repeated='99999999'><p>a<s c='9'/></p></table-cell></table-row></table:table>", "<si><t>x</t></si>")
	f.Fuzz(func(t *testing.T, a, b string) {
		rels := "<Relationship Id='1' Target='sheet.xml' Type='x/worksheet'/><Relationship Id='2' Target='slide.xml' Type='x/slide'/>"
		data := archive(t, map[string]string{
			"word/document.xml": a, "word/styles.xml": b, "content.xml": a, "ppt/presentation.xml": "<sldId id='2' r:id='2' xmlns:r='r'/>", "ppt/_rels/presentation.xml.rels": rels, "ppt/slide.xml": a,
			"xl/workbook.xml": a, "xl/_rels/workbook.xml.rels": rels, "xl/sheet.xml": b, "xl/styles.xml": b, "xl/sharedStrings.xml": b,
			"META-INF/container.xml": "<rootfile full-path='m.opf'/>", "m.opf": "<item id='1' href='p.html' media-type='html'/><itemref idref='1'/>", "p.html": a,
		})
		for _, kind := range []string{"docx", "odt", "ods", "pptx", "xlsx", "epub"} {
			if _, err := document.Text(t.Context(), kind, data); err != nil && strings.Contains(fmt.Sprint(err), "runtime error") {
				t.Errorf("%s: %v", kind, err)
			}
		}
	})
}
