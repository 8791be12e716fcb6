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
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"

	"loki/internal/base/document/pdf"
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

// onePage makes a file with one page, its fonts and a form. F1 is a simple font, F2 has two bytes for a character, see
// [show] for F3.
func onePage(content string) []byte {
	return build(
		"<</Type /Catalog /Pages 2 0 R>>",
		"<</Type /Pages /Kids [3 0 R] /Count 1 /Resources <</Font <</F1 4 0 R /F2 5 0 R /F3 10 0 R /F4 12 0 R /F5 14 0 R /F6 15 0 R /F7 13 0 R /F8 16 0 R /F9 17 0 R>> /XObject <</X 8 0 R>> /Properties <</P1 <</ActualText (named)>>>>>>>>",
		"<</Type /Page /Parent 2 0 R /Contents [9 0 R]>>",
		"<</Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding <</BaseEncoding /WinAnsiEncoding /Differences [1 /fi /Eacute /uni20AC /a.sc]>>>>",
		"<</Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R /DescendantFonts [7 0 R]>>",
		packed("", "1 begincodespacerange <0000> <ffff> endcodespacerange 2 beginbfchar <0001> <0048> <0002> <D83DDE00> endbfchar 2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<0078> <0079>] endbfrange"),
		"<</Type /Font /Subtype /CIDFontType2 /DW 500 /W [1 [600 700] 16 18 500]>>",
		packed("/Subtype /Form /Matrix [1 0 0 1 0 100]", "BT /F1 10 Tf (in a form) Tj ET /X Do"),
		packed("", content),
		"<</Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 11 0 R /DescendantFonts [<</DW 500>>]>>",
		packed("", "1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfrange <0000> <ffff> <0000> endbfrange"),
		"<</Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<</CIDSystemInfo <</Registry (Adobe) /Ordering (Japan1) /Supplement 6>>>>]>>",
		"<</Type /Font /Subtype /Type0 /Encoding /90ms-RKSJ-H /DescendantFonts [<</DW 1000>>]>>",
		"<</Type /Font /Subtype /Type1 /BaseFont /Times-Roman>>",
		"<</Type /Font /Subtype /Type1 /BaseFont /Times-Bold>>",
		"<</Type /Font /Subtype /Type3 /FontMatrix [0.01 0 0 0.01 0 0] /Encoding <</Differences [49 /a49 /a50]>> /FirstChar 49 /LastChar 50 /Widths [50 50]>>",
		"<</Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding <</Differences [1 /ff /t_t /f_x]>> /ToUnicode 18 0 R>>",
		packed("", "1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <20> <7e> <0020> endbfrange 2 beginbfchar <01> <0000> <04> <00740069> endbfchar"),
	)
}

// show returns the operator that shows a text in font F3, whose characters are half as wide as they are high. Numbers
// between slashes move what follows to the left.
func show(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "/") {
		if i%2 == 1 {
			b.WriteString(part)
			continue
		}
		b.WriteByte('<')
		for _, unit := range utf16.Encode([]rune(part)) {
			fmt.Fprintf(&b, "%04x", unit)
		}
		b.WriteByte('>')
	}
	return "[" + b.String() + "] TJ "
}

// TestWhatAReaderSees checks what the places of glyphs mean: words, accents, and the direction of lines.
func TestWhatAReaderSees(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, content, want string }{
		{"tight_line", "/F3 10 Tf " + show("of/-140/the/-140/same/-166/document"), "of the same document"},
		{"kerning", "/F3 10 Tf " + show("W/80/o/-60/rld/-250/A/90/V"), "World AV"},
		{"spaced_out", "/F3 10 Tf " + show("s/-150/p/-150/a/-150/c/-150/e/-150/d/-500/o/-150/u/-150/t"), "spaced out"},
		{"single_letters", "/F3 10 Tf " + show("a/-600/b/-600/c/-600/d/-600/e/-600/f/-600/g/-600/h"), "a b c d e f g h"},
		{"blank_before_another_font", "/F5 1 Tf 10 0 0 10 72 700 Tm (contents of the file are identical to the ) Tj /F6 1 Tf 15.396 0 TD (Blue Book) Tj", "contents of the file are identical to the Blue Book"},
		{"blank_that_is_moved_over", "/F3 10 Tf " + show("mo /500/ve"), "move"},
		{"footnote", "/F3 7 Tf 0 4 Td " + show("15") + "/F3 10 Tf 7 -4 Td " + show("This"), "15 This"},
		{"exponent", "/F3 10 Tf " + show("x") + "/F3 7 Tf 5 4 Td " + show("2"), "x2"},

		{"accent_before", "/F3 10 Tf " + show("M¨/500/uller, J´/450/ulio"), "Müller, Júlio"},
		{"accent_behind", "/F3 10 Tf " + show("garc/500/¸on"), "garçon"},
		{"accent_on_a_capital", "/F3 10 Tf 2.3 Ts " + show("´/530/") + "0 Ts " + show("Etat"), "État"},
		{"accent_on_dotless_i", "/F3 10 Tf " + show("na¨/500/ıf"), "naïf"},
		{"accent_that_combines", "/F3 10 Tf " + show("e/500/\u0301t\u0301"), "ét\u0301"},
		{"no_accent", "/F3 10 Tf " + show("`word´ ~x"), "`word´ ~x"},

		{"hebrew", "/F3 10 Tf " + show("םלוע םולש"), "שלום עולם"},
		{"hebrew_in_logical_order", "/F3 10 Tf 50 0 Td " + show("ש/1000/ל/1000/ו/1000/ם"), "שלום"},
		{"hebrew_with_numbers", "/F3 10 Tf " + show(".םיחוכ 2024-01-02 ךיראתב 12.5%"), "12.5% בתאריך 2024-01-02 כוחים."},
		{"hebrew_with_brackets", "/F3 10 Tf " + show("(ןחבמ) םולש"), "שלום (מבחן)"},
		{"hebrew_with_latin", "/F3 10 Tf " + show(".הפ Free Software 3 םולש"), "שלום Free Software 3 פה."},
		{"hebrew_with_points", "/F3 10 Tf " + show("\u05b8/500/ש"), "ש\u05b8"},
		{"hebrew_in_english", "/F3 10 Tf " + show("The word םולש means peace."), "The word שלום means peace."},
		{"arabic_forms", "/F3 10 Tf " + show("\ufee1\ufefc\ufeb4\ufedf\ufe8d"), "السلام"},
		{"arabic_with_numbers", "/F3 10 Tf " + show("U+0621 ةزمه 12.5 ددع"), "عدد 12.5 همزة U+0621"},

		{"actual_text", "/F3 10 Tf " + show("Tra") + "/Span <</ActualText <FEFF00660066>>> BDC " + show("xy") + " EMC " + show("ic"), "Traffic"},
		{"actual_text_for_nothing_known", "/F1 10 Tf /Span <</ActualText <FEFF67714EAC>>> BDC (\x05) Tj EMC", "東京"},
		{"actual_text_by_name", "/F3 10 Tf /Span /P1 BDC " + show("??") + "EMC", "named"},
		{"actual_text_in_another", "/F3 10 Tf /A <</ActualText (whole)>> BDC " + show("a") + "/B <</ActualText (part)>> BDC " + show("b") + "EMC " + show("c") + "EMC /C BMC " + show("d") + "EMC EMC", "wholed"},
		{"no_actual_text", "/F3 10 Tf " + show("a-") + "/Span <</ActualText ()>> BDC " + show("x") + "EMC " + show("b"), "a- b"},
		{"soft_hyphen", "/F3 10 Tf 12 TL " + show("Donau\u00ad") + "T* " + show("dampfer"), "Donaudampfer"},

		{"characters_of_adobe", "/F4 10 Tf <04650466> Tj", "亜唖"},
		{"shift_jis", "/F7 10 Tf <41 938c8b9e b1> Tj", "A東京ｱ"},
		{"drawn_digits", "/F8 10 Tf (12) Tj", "12"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := pdf.Text(t.Context(), onePage("BT "+tt.content+" ET"))
			if err != nil || strings.TrimSpace(got) != tt.want {
				t.Errorf("%q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	words, picture := "<</Contents 3 0 R>>", "<</Contents 4 0 R /Resources <</XObject <</I 5 0 R>>>>>>"
	file := func(kids ...string) []byte {
		return build(
			"<</Type /Catalog /Pages 2 0 R>>",
			"<</Kids ["+strings.Join(kids, " ")+"] /Resources <</Font <</F <</Subtype /Type1 /BaseFont /Courier>>>>>>>>",
			stream("", "BT /F 10 Tf (words) Tj ET"), stream("", "/I Do"), stream("/Subtype /Image", "x"),
		)
	}
	for _, tt := range []struct {
		name string
		kids []string
		want string
	}{
		{"pages", []string{words, words}, "words\n\n\fwords\n\n"},
		{"empty_first", []string{"<<>>", words}, "\fwords\n\n"},
		{"one_picture", []string{words, picture}, "words\n\n\f[Without text, but with pictures: page 2]\n"},
		{"pictures", []string{picture, words, picture, picture, picture, "<<>>", picture}, "\fwords\n\n\f\f\f\f\f[Without text, but with pictures: pages 1, 3-5, 7]\n"},
		{"only_pictures", []string{picture, picture}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, _, err := pdf.Text(t.Context(), file(tt.kids...)); err != nil || got != tt.want {
				t.Errorf("%q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, content, want string }{
		{"string", "BT /F1 10 Tf 100 700 Td (Hello, world) Tj ET", "Hello, world"},
		{"escapes", `BT /F1 10 Tf (a\(b\)\101\x (n(e)st) <41 42 4>) Tj ET`, "a(b)Ax (n(e)st) <41 42 4>"},
		{"hex", "BT /F1 10 Tf <48 69> Tj ET", "Hi"},
		{"names_of_glyphs", `BT /F1 10 Tf (\001\002\003\004\200) Tj ET`, "fiÉ€a€"},
		{"ligatures_of_names_and_of_nothing", `BT /F9 10 Tf (o\001 se\002ing \003opera\004on) Tj ET`, "off setting fxoperation"},
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
			got, _, err := pdf.Text(t.Context(), onePage(tt.content))
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
	if got, _, err := pdf.Text(t.Context(), data); err != nil || strings.TrimSpace(got) != "found" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	loop := build("<</Type /Catalog /Pages 2 0 R>>", "<</Kids [2 0 R 3 0 R]>>", "3 0 R", "<</Kids 4 0 R>>")
	for _, data := range [][]byte{nil, []byte("%PDF-1.4"), []byte("1 0 obj"), loop, bytes.Repeat([]byte("1 0 obj << "), 1000), bytes.Repeat([]byte("["), 1<<16)} {
		if _, _, err := pdf.Text(t.Context(), data); err == nil && !bytes.Equal(data, loop) {
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
	if _, _, err := pdf.Text(t.Context(), data); err == nil || !strings.Contains(err.Error(), "unpacks to too much") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, _, err := pdf.Text(ctx, data); err == nil || time.Since(begin) > 5*time.Second {
		t.Error(err, time.Since(begin))
	}
}

func TestNotesAndFields(t *testing.T) {
	t.Parallel()
	data := build(
		"<</Type /Catalog /Pages 2 0 R>>", "<</Kids [3 0 R] /Resources <</Font <</F <</Subtype /Type1 /BaseFont /Courier>>>>>>>>",
		"<</Annots [4 0 R 5 0 R 6 0 R 8 0 R 9 0 R <</Subtype /FreeText /F 2 /Contents (hidden)>>]>>",
		"<</Subtype /FreeText /Contents (a note)>>",
		"<</Subtype /Widget /Parent 7 0 R>>",
		"<</Subtype /Widget /V (hidden by its appearance) /Rect [0 0 9 9] /AP <</N 10 0 R>>>>",
		"<</T (name) /V <FEFF004A00FA006C0069006F>>>",
		"<</Subtype /Text /Contents (a comment, which is closed)>>", "<</Subtype /Widget /V /Yes>>",
		stream("/Subtype /Form /Resources <</Font <</F <</Subtype /Type1 /BaseFont /Courier>>>>>>", "BT /F 10 Tf (seen) Tj ET"),
	)
	if got, _, err := pdf.Text(t.Context(), data); err != nil || got != "a note\n\nJúlio\n\nseen\n\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestHostileFiles checks that small files with much work are refused. Each would take a minute, or much memory.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	forms, names := []string{}, ""
	for i := range 10 {
		names += fmt.Sprintf("/X%d %d 0 R ", i, 6+i)
		forms = append(forms, packed("/Subtype /Form", strings.Repeat(fmt.Sprintf("/X%d Do ", i+1), 20)))
	}
	file := func(kids int, content string, more ...string) []byte {
		return build(append([]string{
			"<</Type /Catalog /Pages 2 0 R>>",
			"<</Kids [" + strings.Repeat("3 0 R ", min(kids, 1)) + strings.Repeat("<</Contents 5 0 R>> ", kids-1) + "] /Resources <</Font <</F 4 0 R>> /XObject <<" + names + ">>>>>>",
			"<</Contents 5 0 R>>", "<</Type /Font /Subtype /Type1 /BaseFont /Courier>>", content,
		}, more...)...)
	}
	for name, data := range map[string][]byte{
		"forms_in_forms":    file(1, stream("", "/X0 Do"), forms...),
		"one_large_stream":  file(1, packed("", strings.Repeat(" ", 40<<20))),
		"many_glyphs":       file(1, packed("", "BT /F 1 Tf "+strings.Repeat("("+strings.Repeat("a", 1000)+") Tj ", 10000))),
		"one_text_on_pages": file(2000, packed("", "BT /F 1 Tf "+strings.Repeat("(a) Tj ", 20000))),
		"many_objects":      bytes.Repeat([]byte("1 0 obj 0 "), 500_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := pdf.Text(t.Context(), data); err == nil || !strings.Contains(err.Error(), "too much") {
				t.Error(err)
			}
		})
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
	source, err := os.ReadFile("../../../../docs/architecture.md")
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
	text, _, err := pdf.Text(t.Context(), data)
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
		_, _, _ = pdf.Text(ctx, data)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
