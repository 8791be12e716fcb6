package document_test

import "testing"

// TestTroubleOfOthers reads documents, made anew, over which other readers stumbled.
func TestTroubleOfOthers(t *testing.T) {
	t.Parallel()
	const chart = "<c:chart><c:title><c:overlay/></c:title><c:pie3DChart><c:ser><c:tx><c:v>Share</c:v></c:tx><c:cat><c:pt idx='0'><c:v>A</c:v></c:pt><c:pt idx='1'><c:v>B</c:v></c:pt></c:cat>" +
		"<c:val><c:pt idx='0'><c:v>#N/A</c:v></c:pt><c:pt idx='1'><c:v>2</c:v></c:pt></c:val></c:ser></c:pie3DChart></c:chart>"
	deck := archive(t, map[string]string{
		"ppt/presentation.xml": "<x xmlns:r='r'><sldId r:id='1'/></x>", "ppt/_rels/presentation.xml.rels": rels("1", "slide", "a.xml", "2", "slide", "slides/NULL"),
		"ppt/a.xml":            "<sld xmlns:r='r'><sp><nvSpPr/><txBody><a:p><a:t>Text</a:t></a:p></txBody></sp><graphicFrame><c:chart r:id='c'/></graphicFrame><pic/></sld>",
		"ppt/_rels/a.xml.rels": rels("c", "chart", "c.xml", "n", "image", "NULL"), "ppt/c.xml": chart,
	})
	dates := func(system string) []byte {
		return archive(t, map[string]string{
			"xl/workbook.xml": "<workbook xmlns:r='r'><workbookPr " + system + "/><sheet name='S' r:id='1'/></workbook>", "xl/_rels/workbook.xml.rels": rels("1", "worksheet", "s.xml"),
			"xl/styles.xml": "<cellXfs><xf numFmtId='14'/></cellXfs>", "xl/s.xml": "<row><c s='0'><v>10</v></c><c s='0'><v>42004</v></c></row>",
		})
	}
	for name, tt := range map[string]struct {
		kind string
		data []byte
		want string
	}{
		"control_in_line":      {"docx", docx(t, "<w:p><w:r><w:t>A </w:t></w:r><w:sdt><w:sdtPr><w:text/></w:sdtPr><w:sdtContent><w:r><w:t>VALUE</w:t></w:r></w:sdtContent></w:sdt><w:r><w:t> z</w:t></w:r></w:p>", nil), "A VALUE z"},
		"control_in_box":       {"docx", docx(t, "<w:p><w:pict><w:txbxContent><w:sdt><w:sdtContent>"+p("quote")+"</w:sdtContent></w:sdt></w:txbxContent></w:pict></w:p>", nil), "quote"},
		"control_with_picture": {"docx", docx(t, "<w:sdt><w:sdtContent><w:p><w:pic/></w:p>"+p("Cover title")+"</w:sdtContent></w:sdt>", nil), "Cover title !1 picture without text"},
		"control_of_row":       {"docx", docx(t, "<w:tbl><w:sdt><w:sdtContent><w:tr><w:tc>"+p("a")+"</w:tc></w:tr></w:sdtContent></w:sdt></w:tbl>", nil), "| a |\n|---|"},
		"without_values":       {"docx", docx(t, "<w:p><w:pPr><w:pStyle/><w:numPr><w:ilvl/><w:numId/></w:numPr></w:pPr><w:r><w:sym/><w:t>a</w:t></w:r></w:p>", nil), "a !1 symbol"},
		"text_of_a_button":     {"docx", docx(t, "<w:p><w:fldChar w:fldCharType='begin'/><w:instrText> MACROBUTTON  Name Proposal 1: </w:instrText><w:instrText>beams</w:instrText><w:fldChar w:fldCharType='end'/><w:t> here</w:t></w:p>", nil), "Proposal 1: beams here"},
		"chart_without_value":  {"pptx", deck, "## Slide 1\n\nText\n\n|  | Share |\n|---|---|\n| A | #N/A |\n| B | 2 | !1 picture without text"},
		"from_1904":            {"xlsx", dates("date1904='1'"), "## S\n\n| 1904-01-11 | 2019-01-01 |\n|---|---|"},
		"begin_of_1900":        {"xlsx", dates(""), "## S\n\n| 1900-01-10 | 2014-12-31 |\n|---|---|"},
		"rtf_table":            {"rtf", []byte("{\\rtf1\\ansi\\deff0\n\\trowd\n\\cellx1000\n\\cellx2000\n\\intbl cell 1\\cell\n\\intbl cell 2\\cell\n\\row\n}"), "cell 1 | cell 2 |"},
		"rtf_cells_alone":      {"rtf", []byte(`{\rtf1 AAA\cell BBB\cell CCC\cell}`), "AAA | BBB | CCC |"},
		"rtf_unicode":          {"rtf", []byte(`{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fnil\fcharset0 Arial;}}\viewkind4\uc1\pard\u1042?\u1086?\u1074?\u1072?\par}`), "Вова"},
		"script_that_is_empty": {"xhtml", []byte(`<html xmlns="http://www.w3.org/1999/xhtml"><head><script src="kobo.js"/><title/></head><body><p>N</p></body></html>`), "N"},
	} {
		if got := read(t, tt.kind, tt.data); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
