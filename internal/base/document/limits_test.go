package document_test

import (
	"strings"
	"testing"
	"time"
)

// TestSmallDocumentsCannotCauseMuchWork reads documents whose size does not show what they unpack or repeat to.
func TestSmallDocumentsCannotCauseMuchWork(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind string
		data []byte
	}{
		"references": {"docx", docx(t, strings.Repeat("<c:chart r:id='z'/>", 100_000), map[string]string{"word/_rels/document.xml.rels": strings.Repeat("<Relationship Id='c' Type='x/chart' Target='c.xml'/>", 50_000)})},
		"brackets":   {"html", []byte("<p>" + strings.Repeat("[", 1<<20))},
		"columns":    {"html", []byte("<table>" + strings.Repeat("<tr><td colspan=100000>x", 2000))},
		"row":        {"html", []byte("<table><tr>" + strings.Repeat("<td>x", 30000) + strings.Repeat("<tr><td>x", 30000))},
		"wide_cell":  {"html", []byte("<table><tr><td>" + strings.Repeat("x", 1<<20) + strings.Repeat("<tr><td>x", 20000))},
		"lines":      {"html", []byte("<table>" + strings.Repeat("<tr><td rowspan=60000>x", 3000))},
		"huge":       {"html", []byte("<table><tr><td colspan=99999999999999999999 rowspan=99999999999999999999>x")},
		"spans":      {"html", []byte("<table>" + strings.Repeat("<tr><td colspan=1000 rowspan=1000>x", 3000))},
		"repeats":    {"ods", archive(t, map[string]string{"content.xml": "<office:spreadsheet><table:table>" + strings.Repeat("<table:table-row table:number-rows-repeated='1048576'><table:table-cell table:number-columns-repeated='16384'/></table:table-row>", 50_000)})},
		"one_text":   {"xlsx", archive(t, map[string]string{"xl/workbook.xml": "<x xmlns:r='r'><sheet name='S' r:id='1'/></x>", "xl/_rels/workbook.xml.rels": rels("1", "worksheet", "s.xml"), "xl/sharedStrings.xml": "<si><t>" + strings.Repeat("a", 1<<20), "xl/s.xml": "<row>" + strings.Repeat("<c t='s'><v>0</v></c>", 50_000)})},
	} {
		begin := time.Now()
		read(t, tt.kind, tt.data)
		if took := time.Since(begin); took > time.Minute { // without the limits it is hours
			t.Errorf("%s: %v", name, took)
		}
	}
}
