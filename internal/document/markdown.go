package document

import (
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
)

// Markdown converts an HTML page, without what only browsers need and without navigation. Links are made
// absolute by address, which may be empty. A page that cannot be converted stays as it is.
func Markdown(html, address string) string {
	conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	for _, tag := range []string{"nav", "template", "svg", "canvas", "iframe", "object", "button", "dialog"} {
		conv.Register.TagType(tag, converter.TagTypeRemove, converter.PriorityEarly)
	}
	text, err := conv.ConvertString(html, converter.WithDomain(address))
	if err != nil || strings.TrimSpace(text) == "" && !strings.Contains(html, "<") {
		return html
	}
	return text
}
