package pdf_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"loki/internal/document/pdf"
)

// build makes a PDF file of objects, from number 1, without a table of them. The first is the catalog.
func build(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("trailer <</Root 1 0 R>>\n%%EOF\n")
	return b.Bytes()
}

func stream(dict, data string) string {
	return fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", dict, len(data), data)
}

func packed(dict, data string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(data))
	w.Close()
	return stream(dict+" /Filter /FlateDecode", b.String())
}

// onePage makes a file with one page, two fonts and a form. F1 is a simple font, F2 has two bytes for a character.
func onePage(content string) []byte {
	return build(
		"<</Type /Catalog /Pages 2 0 R>>",
		"<</Type /Pages /Kids [3 0 R] /Count 1 /Resources <</Font <</F1 4 0 R /F2 5 0 R>> /XObject <</X 8 0 R>>>>>>",
		"<</Type /Page /Parent 2 0 R /Contents [9 0 R]>>",
		"<</Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding <</BaseEncoding /WinAnsiEncoding /Differences [1 /fi /Eacute /uni20AC /a.sc]>>>>",
		"<</Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R /DescendantFonts [7 0 R]>>",
		packed("", "1 begincodespacerange <0000> <ffff> endcodespacerange 2 beginbfchar <0001> <0048> <0002> <D83DDE00> endbfchar 2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<0078> <0079>] endbfrange"),
		"<</Type /Font /Subtype /CIDFontType2 /DW 500 /W [1 [600 700] 16 18 500]>>",
		packed("/Subtype /Form /Matrix [1 0 0 1 0 100]", "BT /F1 10 Tf (in a form) Tj ET /X Do"),
		packed("", content),
	)
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, content, want string }{
		{"string", "BT /F1 10 Tf 100 700 Td (Hello, world) Tj ET", "Hello, world"},
		{"escapes", `BT /F1 10 Tf (a\(b\)\101\x (n(e)st) <41 42 4>) Tj ET`, "a(b)Ax (n(e)st) <41 42 4>"},
		{"hex", "BT /F1 10 Tf <48 69> Tj ET", "Hi"},
		{"names_of_glyphs", `BT /F1 10 Tf (\001\002\003\004\200) Tj ET`, "fiÉ€a€"},
		{"kerning_and_words", "BT /F1 10 Tf [(Wo) 40 (rd) -400 (two) -20 (fold)] TJ ET", "Word twofold"},
		{"words_by_places", "BT /F1 10 Tf (one) Tj 30 0 Td (two) Tj 18 0 Td (fold) Tj ET", "one twofold"},
		{"a_blank_that_is_moved_over", "BT /F1 10 Tf -6 Tw (mp le) Tj ET", "mple"},
		{"lines", "BT /F1 10 Tf 12 TL (one) Tj T* (two) Tj (three) ' 0 -40 Td (para) Tj ET", "one\ntwo\nthree\n\npara"},
		{"a_divided_word", "BT /F1 10 Tf 12 TL (exam-) Tj (ple of well-) ' (Known) ' ET", "example of well-\nKnown"},
		{"superscript", "BT /F1 10 Tf (x) Tj /F1 7 Tf 6 4 Td (2) Tj /F1 10 Tf 5 -4 Td (y) Tj ET", "x2y"},
		{"rotated", "BT /F1 10 Tf 0 1 -1 0 100 100 Tm (up) Tj ET BT 1 0 0 1 5 5 Tm (right) Tj ET", "up\n\nright"},
		{"two_bytes", "BT /F2 10 Tf <0001 0010 0011 0012 0020 0021 0002> Tj ET", "Habcxy😀"},
		{"form_in_itself", "BT /F1 10 Tf 0 500 Td (page) Tj ET q /X Do Q", "page\n\nin a form"},
		{"picture_within", "BI /W 2 /H 1 ID \x00EIx EI BT /F1 10 Tf (text) Tj ET", "text"},
		{"wrong_operands", "Q Q (x) Tj BT Tf /F1 10 Tf 1 Td /N Tm TJ [ (a) /b null ] TJ ET", "a"},
		{"endless_array", "BT /F1 10 Tf (a) Tj [[[[[[", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := pdf.Text(t.Context(), onePage(tt.content))
			if err != nil || strings.TrimSpace(got) != tt.want {
				t.Errorf("%q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}

func TestObjectsThatArePacked(t *testing.T) {
	t.Parallel()
	catalog, pages := "<</Type/Catalog/Pages 11 0 R>> ", "<</Kids[12 0 R]>>"
	data := build(
		packed(fmt.Sprintf("/Type /ObjStm /N 2 /First %d", len("10 0 11 32 ")), "10 0 11 "+fmt.Sprint(len(catalog))+" "+catalog+pages),
		packed("/Type /XRef /Root 10 0 R", ""),
	)
	data = bytes.Replace(data, []byte("trailer <</Root 1 0 R>>"), []byte("12 0 obj <</Contents 13 0 R /Resources <</Font <</F <</Subtype/Type1>>>>>>>> endobj 13 0 obj <<>> stream\nBT /F 9 Tf (found) Tj ET\nendstream endobj"), 1)
	if got, err := pdf.Text(t.Context(), data); err != nil || strings.TrimSpace(got) != "found" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	loop := build("<</Type /Catalog /Pages 2 0 R>>", "<</Kids [2 0 R 3 0 R]>>", "3 0 R", "<</Kids 4 0 R>>")
	for _, data := range [][]byte{nil, []byte("%PDF-1.4"), []byte("1 0 obj"), loop, bytes.Repeat([]byte("1 0 obj << "), 1000), bytes.Repeat([]byte("["), 1<<16)} {
		if _, err := pdf.Text(t.Context(), data); err == nil && !bytes.Equal(data, loop) {
			t.Errorf("%.20q is read", data)
		}
	}
}

// TestBombs checks that what is packed a thousand times smaller is refused, and that the context ends all work.
func TestBombs(t *testing.T) {
	t.Parallel()
	bomb := packed("", strings.Repeat(" ", 64<<20))
	kids := strings.Repeat("3 0 R ", 1)
	data := build("<</Type /Catalog /Pages 2 0 R>>", "<</Kids ["+kids+"]>>", "<</Contents ["+strings.Repeat("4 0 R ", 20)+"]>>", bomb)
	if _, err := pdf.Text(t.Context(), data); err == nil || !strings.Contains(err.Error(), "unpacks to too much") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := pdf.Text(ctx, data); err == nil || time.Since(begin) > 5*time.Second {
		t.Error(err, time.Since(begin))
	}
}

func words(s string) map[string]int {
	count := make(map[string]int)
	for _, w := range strings.FieldsFunc(norm.NFKC.String(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		count[w]++
	}
	return count
}

// TestAgainstPdftotext compares with another reader, word by word.
func TestAgainstPdftotext(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"groff", "ps2pdf", "pdftotext"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	source, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.pdf")
	groff := exec.CommandContext(t.Context(), "sh", "-c", "groff -Tps -Kutf8 | ps2pdf - "+file)
	groff.Stdin = bytes.NewReader(bytes.ReplaceAll(source, []byte(`\`), []byte(`\e`)))
	if out, err := groff.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	other, err := exec.CommandContext(t.Context(), "pdftotext", file, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := pdf.Text(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	want, got := words(string(other)), words(text)
	all, found := 0, 0
	for w, n := range want {
		all += n
		found += min(n, got[w])
	}
	if all < 1000 || float64(found) < 0.99*float64(all) {
		t.Errorf("%d of %d words were read", found, all)
	}
}

func FuzzText(f *testing.F) {
	f.Add(onePage("BT /F1 10 Tf 0 500 Td (page) Tj [(a) -1 <00>] TJ ET q /X Do Q"))
	f.Add(onePage("BI ID EI BT /F2 1 Tf (ab) Tj"))
	f.Add(build(packed("/Type /ObjStm /N 1 /First 5", "2 0  <<>>"), "<</Kids [1 0 R]>>"))
	f.Add(build(stream("/Filter [/ASCII85Decode /LZWDecode /RunLengthDecode /ASCIIHexDecode]", "zzz~>")))
	f.Add([]byte("1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Contents 3 0 R>> 3 0 obj<</Filter/LZW>>stream\n\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01endstream trailer<</Encrypt<</Filter/Standard/V 5/R 6/CF<</S<</CFM/AESV3>>>>/StmF/S>>>>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		_, _ = pdf.Text(ctx, data)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
