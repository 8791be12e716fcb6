package document_test

import (
	"fmt"
	"strings"
	"testing"

	"loki/internal/base/document"
)

// read returns the text of a document without its last line feed, and what was not read behind " !".
func read(t testing.TB, kind string, data []byte) string {
	t.Helper()
	c, err := document.Text(t.Context(), kind, data)
	if err != nil {
		return "error: " + err.Error()
	}
	text := strings.TrimSuffix(c.Text, "\n")
	if len(c.Unread) > 0 {
		text += " !" + strings.Join(c.Unread, ", ")
	}
	return text
}

// rels returns a list of references: id, kind and target of each.
func rels(all ...string) string {
	var out strings.Builder
	for i := 0; i < len(all); i += 3 {
		fmt.Fprintf(&out, "<Relationship Id='%s' Type='http://x/%s' Target='%s'/>", all[i], all[i+1], all[i+2])
	}
	return "<Relationships>" + out.String() + "</Relationships>"
}

// docx returns a document of Word with a body, and further parts.
func docx(t testing.TB, body string, parts map[string]string) []byte {
	all := map[string]string{"word/document.xml": "<w:document xmlns:w='w' xmlns:mc='mc' xmlns:r='r'><w:body>" + body + "</w:body></w:document>"}
	for name, text := range parts {
		all[name] = text
	}
	return archive(t, all)
}

// p returns a paragraph of Word.
func p(text string) string { return "<w:p><w:r><w:t>" + text + "</w:t></w:r></w:p>" }

func TestPartsByReference(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind  string
		files map[string]string
		want  string
	}{
		"word": {"docx", map[string]string{
			`_RELS\.rels`: rels("1", "officeDocument", "/Word/main2.xml"), `word\MAIN2.xml`: p("Text"),
			`word\_rels\main2.xml.rels`: rels("1", "footnotes", "notes7.xml", "2", "styles", "x.xml"), "word/Notes7.xml": p("Note"),
		}, "Text\n\nNote"},
		"sheets": {"xlsx", map[string]string{
			"_rels/.rels": rels("1", "officeDocument", "xl/workbook2.xml"), "xl/workbook2.xml": "<workbook xmlns:r='r'><sheet name='S' r:id='3'/></workbook>",
			"xl/_rels/workbook2.xml.rels": rels("1", "sharedStrings", "texts.xml", "2", "styles", "st.xml", "3", "worksheet", "s.xml"),
			"xl/Texts.xml":                "<sst><si><t>shared</t></si></sst>", "xl/st.xml": "<cellXfs><xf numFmtId='10'/></cellXfs>",
			"xl/s.xml": "<row><c r='A1' t='s'><v>0</v></c><c s='0'><v>0.075</v></c></row>",
		}, "## S\n\n| shared | 7.50% |\n|---|---|"},
		"slides": {"pptx", map[string]string{
			"_rels/.rels": rels("1", "officeDocument", "ppt/p2.xml"), "ppt/p2.xml": "<x xmlns:r='r'><sldId id='2' r:id='a%20b'/></x>", "ppt/_rels/p2.xml.rels": rels("a%20b", "slide", "my%20slide.xml"),
			"ppt/my slide.xml": "<sp><txBody><a:p><a:t>Text</a:t></a:p></txBody></sp>",
		}, "## Slide 1\n\nText"},
	} {
		if got := read(t, tt.kind, archive(t, tt.files)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestWordShown(t *testing.T) {
	t.Parallel()
	const box = "<w:drawing><wps:txbx><w:txbxContent><w:p><w:t>box</w:t></w:p></w:txbxContent></wps:txbx></w:drawing>"
	const vml = "<w:pict><v:textbox><w:txbxContent><w:p><w:t>box</w:t></w:p></w:txbxContent></v:textbox></w:pict>"
	for name, tt := range map[string]struct{ body, want string }{
		"box_between":   {"<w:p><w:r><w:t>Before</w:t></w:r><w:r>" + box + "</w:r><w:r><w:t>after</w:t></w:r></w:p>", "Beforeafter\n\nbox"},
		"vml_box":       {"<w:p><w:t>A</w:t>" + vml + "</w:p>", "A\n\nbox"},
		"box_once":      {"<w:p><mc:AlternateContent><mc:Choice>" + box + "</mc:Choice><mc:Fallback>" + vml + "</mc:Fallback></mc:AlternateContent></w:p>", "box"},
		"fallback_only": {"<w:p><mc:AlternateContent><mc:Choice><x/></mc:Choice><mc:Fallback>" + vml + "</mc:Fallback></mc:AlternateContent></w:p>", "box"},
		"box_in_cell":   {"<w:tbl><w:tr><w:tc><w:p><w:t>A</w:t>" + box + "</w:p></w:tc></w:tr></w:tbl>", "| A box |\n|---|"},
		"first_letter":  {"<w:p><w:pPr><w:framePr w:dropCap='drop'/></w:pPr><w:t>D</w:t></w:p>" + p("rop"), "Drop"},
		"word_art":      {"<w:p><w:pict><v:textpath string='ART'/></w:pict></w:p>", "ART"},
		"symbols":       {"<w:p><w:sym w:font='Wingdings' w:char='F0FC'/><w:sym w:font='Symbol' w:char='F061'/><w:sym w:font='Wingdings' w:char='F001'/></w:p>", "✓α !1 symbol"},
		"check_boxes": {
			"<w:p><w:fldChar w:fldCharType='begin'><w:ffData><w:checkBox><w:default w:val='0'/><w:checked/></w:checkBox></w:ffData></w:fldChar><w:fldChar w:fldCharType='end'/><w:t>yes</w:t></w:p>" +
				"<w:p><w:ffData><w:checkBox><w:default w:val='0'/></w:checkBox></w:ffData><w:t>no</w:t></w:p>", "☒ yes\n\n☐ no",
		},
		"choice":          {"<w:p><w:ddList><w:result w:val='1'/><w:listEntry w:val='red'/><w:listEntry w:val='blue'/></w:ddList></w:p>", "blue"},
		"ruby":            {"<w:p><w:ruby><w:rt><w:r><w:t>とう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東</w:t></w:r></w:rubyBase></w:ruby><w:r><w:t>京</w:t></w:r></w:p>", "東京"},
		"field_code":      {"<w:p><w:fldChar w:fldCharType='begin'/><w:t>code</w:t><w:fldChar w:fldCharType='separate'/><w:t>shown</w:t><w:fldChar w:fldCharType='end'/></w:p>", "shown"},
		"field_unended":   {"<w:p><w:fldChar w:fldCharType='begin'/></w:p>" + p("rest"), "rest"},
		"hidden":          {"<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r><w:r><w:t>seen</w:t></w:r></w:p>", "seen !hidden text"},
		"unread":          {p("a") + "<w:p><w:pic/><w:pic/><w:commentReference/><w:object><w:t>x</w:t></w:object></w:p>", "a !2 pictures without text, 1 comment, 1 embedded object"},
		"merged_cells":    {"<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>" + p("ab") + "</w:tc><w:tc>" + p("c") + "</w:tc></w:tr></w:tbl>", "| ab |  | c |\n|---|---|---|"},
		"short_first_row": {"<w:tbl><w:tr><w:tc>" + p("a") + "</w:tc></w:tr><w:tr><w:tc>" + p("b") + "</w:tc><w:tc>" + p("c") + "</w:tc></w:tr></w:tbl>", "| a |  |\n|---|---|\n| b | c |"},
		"deleted_row":     {"<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc>" + p("gone") + "</w:tc></w:tr><w:tr><w:tc>" + p("kept") + "</w:tc></w:tr></w:tbl>", "| kept |\n|---|"},
		"soft_hyphens":    {p("Do\u00adnau\u200b\u2060dampf a\u200db می\u200cروم"), "Donaudampf ab می\u200cروم"},
	} {
		if got := read(t, "docx", docx(t, tt.body, nil)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestWordParts(t *testing.T) {
	t.Parallel()
	chart := "<c:chart><c:title><c:tx><a:p><a:r><a:t>Sales</a:t></a:r></a:p></c:tx></c:title><c:ser><c:tx><c:v>Oars</c:v></c:tx><c:cat><c:pt idx='0'><c:v>May</c:v></c:pt></c:cat><c:val><c:formatCode>0%</c:formatCode><c:pt idx='0'><c:v>0.5</c:v></c:pt></c:val></c:ser></c:chart>"
	data := docx(t, "<w:sectPr><w:headerReference w:type='default' r:id='h'/><w:headerReference w:type='first' r:id='g'/><w:footerReference r:id='f'/></w:sectPr>"+p("Body")+
		"<w:p><c:chart r:id='c'/><dgm:relIds r:dm='d' r:lo='c'/></w:p><w:altChunk r:id='a'/><w:altChunk r:id='b'/><w:altChunk r:id='m'/><w:sectPr><w:headerReference r:id='h2'/></w:sectPr>", map[string]string{
		"word/_rels/document.xml.rels": rels("h", "header", "h.xml", "h2", "header", "h2.xml", "g", "header", "g.xml", "f", "footer", "f.xml", "c", "chart", "c.xml", "d", "diagramData", "d.xml", "a", "aFChunk", "a.htm", "b", "aFChunk", "b.bin", "m", "aFChunk", "m.mht"),
		"word/h.xml":                   p("Head"), "word/h2.xml": p("Head"), "word/g.xml": p("unused"), "word/f.xml": p("Foot"), "word/c.xml": chart, "word/d.xml": "<dgm:t><a:p><a:t>Step</a:t></a:p></dgm:t>",
		"word/a.htm": "<p>Chunk &amp; more", "word/b.bin": "\x00",
		"word/m.mht": "MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=x\r\n\r\n--x\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>Caf=C3=A9\r\n--x--\r\n",
	})
	const want = "Head\n\nBody\n\nSales\n\n|  | Oars |\n|---|---|\n| May | 50% |\n\nStep\n\nChunk & more\n\nCafé\n\nFoot !1 embedded document"
	if got := read(t, "docx", data); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestWordNumbers(t *testing.T) {
	t.Parallel()
	level := func(i int, format, text, more string) string {
		return fmt.Sprintf("<w:lvl w:ilvl='%d'><w:start w:val='1'/><w:numFmt w:val='%s'/><w:lvlText w:val='%s'/>%s</w:lvl>", i, format, text, more)
	}
	parts := map[string]string{
		"word/styles.xml": "<w:styles><w:style w:styleId='H1'><w:name w:val='heading 1'/><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr></w:style><w:style w:styleId='H2'><w:name w:val='heading 2'/><w:basedOn w:val='H1'/></w:style><w:style w:styleId='Own'><w:name w:val='Own'/><w:basedOn w:val='H1'/></w:style></w:styles>",
		"word/numbering.xml": "<w:numbering><w:abstractNum w:abstractNumId='0'>" + level(0, "upperRoman", "Part %1", "") + level(1, "decimal", "%1.%2", "<w:isLgl/><w:pStyle w:val='H2'/>") + "</w:abstractNum>" +
			"<w:abstractNum w:abstractNumId='5'>" + level(0, "lowerLetter", "%1)", "") + level(1, "bullet", "o", "") + level(2, "chineseCounting", "第%3条", "") + "</w:abstractNum>" +
			"<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num><w:num w:numId='2'><w:abstractNumId w:val='5'/></w:num><w:num w:numId='3'><w:abstractNumId w:val='5'/><w:lvlOverride w:ilvl='0'><w:startOverride w:val='1'/></w:lvlOverride></w:num></w:numbering>",
	}
	styled := func(style, text string) string {
		return "<w:p><w:pPr><w:pStyle w:val='" + style + "'/></w:pPr><w:t>" + text + "</w:t></w:p>"
	}
	listed := func(list, level int, text string) string {
		return fmt.Sprintf("<w:p><w:pPr><w:numPr><w:ilvl w:val='%d'/><w:numId w:val='%d'/></w:numPr></w:pPr><w:t>%s</w:t></w:p>", level, list, text)
	}
	body := styled("H1", "One") + styled("H2", "Scope") + styled("H2", "Terms") + styled("Own", "Two") + styled("H2", "More") + listed(2, 0, "x") + listed(2, 0, "y") + listed(2, 1, "dot") + listed(3, 0, "again") +
		listed(2, 2, "clause") + listed(0, 0, "none") + "<w:tbl><w:tr><w:tc>" + listed(2, 0, "cell") + "</w:tc></w:tr></w:tbl>"
	const want = "# Part I One\n\n## 1.1 Scope\n\n## 1.2 Terms\n\n# Part II Two\n\n## 2.1 More\n\na) x\nb) y\n- dot\na) again\n\n第一条 clause\n\nnone\n\n| b) cell |\n|---|"
	if got := read(t, "docx", docx(t, body, parts)); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// book returns a workbook with a sheet, whose cells have styles with the formats.
func book(t testing.TB, sheet string, formats ...string) []byte {
	var codes, styles strings.Builder
	for i, f := range formats {
		fmt.Fprintf(&codes, "<numFmt numFmtId='%d' formatCode='%s'/>", 200+i, strings.NewReplacer("&", "&amp;", "<", "&lt;", "'", "&apos;").Replace(f))
		fmt.Fprintf(&styles, "<xf numFmtId='%d'/>", 200+i)
	}
	return archive(t, map[string]string{
		"xl/workbook.xml": "<workbook xmlns:r='r'><sheet name='S' r:id='1'/><sheet name='Old' state='hidden' r:id='1'/></workbook>", "xl/_rels/workbook.xml.rels": rels("1", "worksheet", "s.xml"),
		"xl/styles.xml": codes.String() + "<cellXfs>" + styles.String() + "</cellXfs>", "xl/s.xml": sheet,
	})
}

func TestNumberFormats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ format, value, want string }{
		{"General", "0.30000000000000004", "0.3"},
		{"0.0%", "0.075", "7.5%"},
		{"00000", "1067", "01067"},
		{"0000-000", "1234567", "1234-567"},
		{`(000) 000\-0000`, "5551234567", "(555) 123-4567"},
		{`"$"#,##0.00`, "1234.5", "$1,234.50"},
		{"#,##0.00 [$€-407]", "-1234567.891", "-1,234,567.89 €"},
		{"0.00", "1.005", "1.01"},
		{"0.00", "-0.001", "0.00"},
		{"#,##0.00;(#,##0.00)", "-5", "(5.00)"},
		{`0.0,,"M"`, "1234567", "1.2M"},
		{"0.0#", "2.5", "2.5"},
		{`"yes";"yes";"no"`, "0", "no"},
		{`[<1000]0;[>=1000]0,"k"`, "5000", "5k"},
		{`0;0;;@`, "0", ""},
		{"0.00E+00", "1234.5", "1.23E+03"},
		{"# ?/?", "1.5", "1.5"},
		{"dd.mm.yyyy", "46097", "16.03.2026"},
		{"[$-407]d. mmmm yyyy", "46097", "16. März 2026"},
		{"[$-40E]d mmmm yyyy", "46097", "2026-03-16"},
		{"ddd d mmm yy", "46097", "Mon 16 Mar 26"},
		{"h:mm AM/PM", "0.75", "6:00 PM"},
		{"h:mm", "0.9999999", "0:00"},
		{"[h]:mm", "1.5625", "37:30"},
		{"[h]:mm:ss", "1.5", "36:00:00"},
		{"mm:ss.0", "0.000011574", "00:01.0"},
		{"yyyy-mm-dd hh:mm", "46097.5", "2026-03-16 12:00"},
		{`yyyy"年"m"月"d"日"`, "46097", "2026年3月16日"},
		{`"unended`, "5", "5"},
		{strings.Repeat("0", 300), "5", "5"},
	} {
		got := read(t, "xlsx", book(t, "<row><c t='str'><v>x</v></c><c s='0'><v>"+tt.value+"</v></c></row>", tt.format))
		want := "## S\n\n| x | " + tt.want + " |\n|---|---| !sheet \"Old\", which is hidden"
		if tt.want == "" {
			want = "## S\n\n| x |\n|---| !sheet \"Old\", which is hidden"
		}
		if tt.format == `"unended` && strings.Contains(got, "unended") {
			continue
		}
		if got != want {
			t.Errorf("%s of %s: %q", tt.format, tt.value, got)
		}
	}
}

func TestSheetShown(t *testing.T) {
	t.Parallel()
	const hidden = ` !sheet "Old", which is hidden`
	for name, tt := range map[string]struct{ sheet, want string }{
		"short_title": {"<row><c t='str'><v>Title</v></c></row><row><c r='B2'><v>1</v></c></row>", "| Title |  |\n|---|---|\n|  | 1 |" + hidden},
		"hidden": {
			"<cols><col min='2' max='2' hidden='1'/></cols><row><c r='A1'><v>1</v></c><c r='B1'><v>2</v></c><c r='C1'><v>3</v></c></row><row hidden='1'><c><v>4</v></c></row>",
			"| 1 |  | 3 |\n|---|---|---|" + hidden + `, 1 hidden row of sheet "S", 1 hidden column of sheet "S"`,
		},
		"no_value": {"<row><c t='str'><v>a</v></c><c><f>1+1</f></c></row>", "| a |\n|---|" + hidden + `, 1 formula without a value of sheet "S"`},
		"damaged":  {"<row><c><v>1</v></c></row><row", "| 1 |\n|---|" + hidden + `, sheet "S" (damaged)`},
	} {
		if got := read(t, "xlsx", book(t, tt.sheet)); got != "## S\n\n"+tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestSlidesShown(t *testing.T) {
	t.Parallel()
	shape := func(ph, text string) string {
		return "<sp>" + ph + "<txBody><a:p><a:t>" + text + "</a:t></a:p></txBody></sp>"
	}
	data := archive(t, map[string]string{
		"ppt/presentation.xml":            "<x xmlns:r='r'><sldId r:id='2'/><sldId r:id='1'/><sldId r:id='3'/><sldId r:id='4'/></x>",
		"ppt/_rels/presentation.xml.rels": rels("1", "slide", "a.xml", "2", "slide", "b.xml", "3", "slide", "c.xml", "4", "slide", "d.xml"),
		"ppt/a.xml":                       "<sld>" + shape("<ph type='title'/>", "First") + "<grpSp><grpSp>" + shape("", "grouped") + "</grpSp></grpSp>" + shape("<ph type='ftr'/>", "Footer") + "<pic/></sld>",
		"ppt/_rels/a.xml.rels":            rels("1", "notesSlide", "n.xml", "2", "slideLayout", "l.xml"), "ppt/n.xml": shape("", "spoken") + shape("<ph type='sldNum'/>", "7"),
		"ppt/l.xml": shape("", "Company") + shape("<ph type='body'/>", "Click to edit"),
		"ppt/b.xml": "<sld>" + shape("<ph type='ftr'/>", "Footer") + "</sld>", "ppt/c.xml": "<sld show='0'>" + shape("", "secret") + "</sld>", "ppt/d.xml": "<sld>" + shape("", "kept") + "<sp",
	})
	const want = "## Slide 1\n\nFooter\n\n## Slide 2: First\n\ngrouped\n\nspoken\n\nCompany\n\n## Slide 4\n\nkept !1 picture without text, slide 3, which is hidden, slide 4 (damaged)"
	if got := read(t, "pptx", data); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestSlideNumbers: PowerPoint numbers paragraphs by itself, and their texts do not have the numbers.
func TestSlideNumbers(t *testing.T) {
	t.Parallel()
	p := func(level int, numbered, text string) string {
		return fmt.Sprintf("<a:p><a:pPr lvl='%d'>%s</a:pPr><a:r><a:t>%s</a:t></a:r></a:p>", level, numbered, text)
	}
	auto := func(scheme string) string { return "<a:buAutoNum type='" + scheme + "'/>" }
	body := p(0, auto("arabicPeriod"), "one") + p(1, auto("alphaLcParenBoth"), "sub") + p(1, auto("alphaLcParenBoth"), "sub") + p(0, auto("arabicPeriod"), "two") + p(0, auto("arabicPeriod"), "") + p(1, auto("alphaLcParenBoth"), "again") +
		p(0, "", "between") + p(0, auto("arabicPeriod"), "anew") + p(0, "<a:buAutoNum type='romanUcPeriod' startAt='4'/>", "four") + p(99, auto("circleNumDbPlain"), "other") + "<a:p><a:t>plain</a:t></a:p>"
	data := archive(t, map[string]string{
		"ppt/presentation.xml": "<x xmlns:r='r'><sldId r:id='1'/></x>", "ppt/_rels/presentation.xml.rels": rels("1", "slide", "a.xml"),
		"ppt/a.xml": "<sld><sp><txBody>" + body + "</txBody></sp><sp><txBody>" + p(0, auto("arabicPeriod"), "next box") + "</txBody></sp></sld>",
	})
	const want = "## Slide 1\n\n1. one\n(a) sub\n(b) sub\n2. two\n(a) again\n\nbetween\n\n1. anew\nIV. four\n1. other\n\nplain\n\n1. next box"
	if got := read(t, "pptx", data); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestOpenDocumentShown(t *testing.T) {
	t.Parallel()
	doc := func(styles, body string) []byte {
		return archive(t, map[string]string{
			"styles.xml":           "<style:master-page><style:header><text:p>Head</text:p></style:header><style:footer><text:p>1</text:p></style:footer></style:master-page>",
			"content.xml":          "<office:automatic-styles>" + styles + "</office:automatic-styles><office:text>" + body + "</office:text>",
			"Object 1/content.xml": "<chart:title><text:p>Sales</text:p></chart:title>",
		})
	}
	const list = "<text:list-style style:name='L'><text:list-level-style-number text:level='1' style:num-format='1' style:num-suffix='.'/><text:list-level-style-number text:level='2' text:display-levels='2' style:num-format='a'/></text:list-style>"
	for name, tt := range map[string]struct{ styles, body, want string }{
		"frame":  {"", "<text:p>a<draw:frame><draw:text-box><text:p>box</text:p></draw:text-box></draw:frame></text:p>", "Head\n\nabox"},
		"object": {"", "<text:p>a<draw:frame><draw:object xlink:href='./Object 1'/><draw:image/></draw:frame></text:p><text:p><draw:frame><draw:image/></draw:frame></text:p>", "Head\n\na Sales !1 picture without text"},
		"numbers": {
			list, "<text:list text:style-name='L'><text:list-item><text:p>x</text:p><text:list><text:list-item><text:p>y</text:p></text:list-item></text:list></text:list-item><text:list-item><text:p>z</text:p><text:p>more</text:p></text:list-item></text:list>",
			"Head\n\n1. x\n\n1.a y\n\n2. z\n\nmore",
		},
		"hidden": {"<style:style style:name='T'><style:text-properties text:display='none'/></style:style>", "<text:p>a<text:span text:style-name='T'>secret</text:span></text:p>", "Head\n\na !hidden text"},
	} {
		if got := read(t, "odt", doc(tt.styles, tt.body)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	sheet := archive(t, map[string]string{"content.xml": "<style:style style:name='ta2'><style:table-properties table:display='false'/></style:style><office:spreadsheet><table:table table:name='A'><table:table-column/><table:table-column table:visibility='collapse'/>" +
		"<table:table-row table:number-rows-repeated='2'><table:table-cell><text:p>x</text:p></table:table-cell><table:table-cell><text:p>h</text:p></table:table-cell></table:table-row><table:table-row table:visibility='collapse'/></table:table>" +
		"<table:table table:name='B' table:style-name='ta2'/></office:spreadsheet>"})
	chart := archive(t, map[string]string{
		"content.xml":          "<office:spreadsheet><table:table table:name='A'><table:table-row><table:table-cell><text:p>x</text:p><draw:frame><draw:object xlink:href='./Object 1'/></draw:frame></table:table-cell></table:table-row></table:table></office:spreadsheet>",
		"Object 1/content.xml": "<chart:title><text:p>Sales</text:p></chart:title><table:table><table:table-row><table:table-cell><text:p>1</text:p></table:table-cell></table:table-row></table:table>",
	})
	if got := read(t, "ods", chart); got != "## A\n\n| x Sales |\n|---|" {
		t.Errorf("%q", got)
	}
	slides := archive(t, map[string]string{"content.xml": "<office:presentation><draw:page><draw:frame><draw:text-box><text:p>a<text:page-number>&lt;number&gt;</text:page-number></text:p></draw:text-box></draw:frame></draw:page></office:presentation>"})
	if got := read(t, "odp", slides); got != "## Slide 1\n\na" {
		t.Errorf("%q", got)
	}
	footed := archive(t, map[string]string{"content.xml": "<office:presentation><presentation:footer-decl presentation:name='f'>Company</presentation:footer-decl>" + strings.Repeat("<draw:page presentation:use-footer-name='f'><text:p>a</text:p></draw:page>", 2) + "</office:presentation>"})
	if got := read(t, "odp", footed); got != "## Slide 1\n\nCompany\n\na\n\n## Slide 2\n\na" {
		t.Errorf("%q", got)
	}
	if got := read(t, "ods", sheet); got != "## A\n\n| x |\n|---|\n| x | !hidden columns, 1 hidden row, sheet \"B\", which is hidden" {
		t.Errorf("%q", got)
	}
}

func TestBookShown(t *testing.T) {
	t.Parallel()
	data := archive(t, map[string]string{
		"META-INF/container.xml": "<rootfile full-path='m.opf'/>",
		"m.opf":                  "<item id='1' href='a.html' media-type='html'/><item id='2' href='B.html' media-type='html'/><item id='3' href='none.html' media-type='html'/><itemref idref='2'/><itemref idref='1'/><itemref idref='3'/>",
		"a.html":                 "<?xml version='1.0' encoding='ISO-8859-1'?><html><head><title/><script src='x'/></head><body><a id='x'/><p>Gr\xfc\xdfe</p></body></html>",
		"b.html":                 "<\x00p\x00>\x00H\x00i\x00",
	})
	if got := read(t, "epub", data); got != "Hi\n\nGrüße !chapter none.html (damaged)" {
		t.Errorf("%q", got)
	}
}

func TestPageShown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`<meta charset="windows-1251"><p>` + "\xcf\xf0\xe8":                                                               "При",
		`<p>Fl&uuml;&shy;sse</p><div hidden>a</div><p style="color:red; display : none">b</p><i aria-hidden="true">c</i>`: "Flüsse",
		`<script>x</script>`: "error: the page has no text; its source can be had on standard input: loki -f - < PAGE.html",
		"no tags":            "no tags",
	} {
		if got := read(t, "html", []byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	deep := "<p>begin" + strings.Repeat("<div>", 5000) + "end"
	if got := read(t, "htm", []byte(deep)); !strings.Contains(got, "begin") || !strings.Contains(got, "end") || strings.Contains(got, "<") {
		t.Errorf("%.100q", got)
	}
}

func TestRTFShown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{\rtf1\ansicpg1252{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fnil\fcharset2 Wingdings;}}\f1 \'cf\'f0{\f0 \'e9}\f2 \'fc}`: "Прé✓",
		`{\rtf1\ansicpg932 \'93\'8c\'8b\'9e}`:                                       "東京",
		`{\rtf1\ansicpg950 \'bb\'4f}{\rtf1\ansicpg850 \'94}`:                        "臺ö",
		`{\rtf1\ansi\ansicpg437 \'94\mac \'9f}`:                                     "öü",
		`{\rtf1 a{\v secret}b\deleted gone\deleted0 c}`:                             "abc !hidden text",
		`{\rtf1{\header Head\par}{\footer 1}{\header Head}x{\pict 01}}`:             "Head\n\nx !1 picture without text",
		`{\rtf1 a{\shp{\*\shpinst{\sp{\sn n}{\sv v}}{\shptxt box}}{\shprslt box}}}`: "a\nbox",
		`{\rtf1\uc2 \u26481\'93\'8c\u20140\'8b\'9e}`:                                "東京",
		`{\rtf1{\upr{a?}{\*\ud{a\u228?}}}{\*\annotation c}}`:                        "aä !1 comment",
	} {
		if got := read(t, "rtf", []byte(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
