package extract

import (
	"strings"
	"sync"
)

// words holds the word lists of the package, all in lower case.
type words struct {
	neverLast     map[string]bool // abbreviations that stand before a name or an explanation
	beforeNumber  map[string]bool // abbreviations only if a number follows
	behindOrdinal map[string]bool // German words that a number with a full stop counts
	maybeLast     map[string]bool // abbreviations that may end a sentence
	stop          map[string]bool // words that say nothing about the subject; in upper case they start a sentence behind one of maybeLast
	summary       map[string]bool // words for summing up
	parts         map[string]bool // parts of a summary
	requests      map[string]bool // verbs that begin a request
	leadIns       map[string]bool // words before the verb of a request
}

// lexicon builds the lists on first use: they are nothing a program that does not
// summarize should wait for.
var lexicon = sync.OnceValue(func() words {
	return words{
		neverLast: set(`mr mrs ms mx dr prof hon rev fr mt gen col maj capt cmdr lt sgt cpl adm gov
			sen rep pres amb supt messrs mme mlle mgr bros herr dipl ing e.g eg i.e ie viz cf vs v ca c
			approx incl excl esp resp a.k.a aka f.e z.b d.h u.a bzw vgl sog p.ej`),
		beforeNumber: set(`no nos nr fig figs eq eqs sec sect vol vols ch chap p pp pg art cl para par app ex
			jan feb mar apr jun jul aug sep sept oct nov dec tab abb abs kap bd s`),
		behindOrdinal: set(`januar februar märz april mai juni juli august september oktober november dezember
			jahrhundert jahrhunderts`),
		maybeLast: set(`etc inc ltd co corp plc llc jr sr st esq al et ed eds est dept univ assn ave blvd
			rd hwy ft oz lb lbs hr hrs sq u.s u.k u.n e.u d.c a.m p.m b.c a.d ph.d m.d b.a m.a usw
			ggf`),
		stop: set(`a about above across after again against ago all almost along already also although
			always am among an and another any anyone anything are around as ask at away back be became
			because become been before being below between both but by can cannot could did do does doing
			done down during each either else enough etc even ever every everyone everything few first for
			from further gave get give given go goes going gone got had has have having he her here hers
			herself him himself his how however i if in indeed instead into is it its itself just keep kept
			last least less let like made make many may maybe me might mine more most much must my myself
			near nearly need neither never nevertheless next no nobody none nor not nothing now of off often
			on once one only onto or other others our ours ourselves out over own per perhaps put quite
			rather really said same say says second see seem seemed seems several shall she should since so
			some someone something soon still such take taken than that the their theirs them themselves
			then there therefore these they thing things third this those though three through thus to
			together too took toward towards two under until up upon us use used using very via was way we
			well went were what whatever when where whether which while who whole whom whose why will with
			within without would yes yet you your yours yourself yourselves
			ain aren couldn didn doesn don hadn hasn haven isn ll mustn needn re shan shouldn ve wasn weren
			won wouldn`),
		summary: set(`summary summaries summarise summarize summarising summarizing tldr condense shorten
			abridge gist`),
		parts: set(`sentence sentences bullet bullets bulleted paragraph paragraphs points`),
		requests: set(`give write extract list create make provide produce return reduce tell pick select
			choose answer reply respond use generate boil show explain describe state what output read`),
		leadIns: set(`now then and so also first finally next just to you must should will`),
	}
})

func set(list string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}
