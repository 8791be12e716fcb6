package hash

import (
	"strings"
	"sync"

	"loki/internal/base/text/rank"
)

// common are the tokens of words that are in many texts and say little about what one is about, and
// that are not among the stop words of package rank.
var common = sync.OnceValue(func() map[string]bool {
	set := make(map[string]bool)
	for _, token := range rank.Tokens(`
		use name set specify run command come see also provide format detail change value list default one must go example
		help etc file group without type argument support current line follow wide create new given may contain add might
		full output return string user way need want make get give take put know like look show find work first last next
		two different many much part thing time case possible within instead exist include require read write call start
		stop end let would could shall since still even yet every another else several something anything nothing usually
		always never per via used well good better best right left back long short large small high low number size kind
		sort form say tell mean think keep allow try ask seem become turn leave happen appear option note information
		available able access describe identify text result place point page`) {
		set[token] = true
	}
	return set
})

// weight returns the weight of a token: what its features count.
func weight(token string) float64 {
	if strings.TrimLeft(token, "0123456789") == "" || len(token) == 1 || common()[token] {
		return 0.7
	}
	return 1
}
