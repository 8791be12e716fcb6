package highlight

// Kind is what a token is: a place in kinds. The zero Kind is text of no particular kind.
type Kind uint8

// kinds has the name of each kind in the lexers' files, and the scopes that it is in a
// TextMate theme, the best one first.
//
// Sources: the token types of Pygments; "Scope Naming" of the Sublime Text documentation.
var kinds = [...]struct{ name, scopes string }{
	{"Text", ""},
	{"TextWhitespace", ""},
	{"TextSymbol", ""},
	{"TextPunctuation", "punctuation"},
	{"Error", ""}, // what a lexer does not know need not be wrong
	{"Other", ""},
	{"None", ""},
	{"Keyword", "keyword.control"},
	{"KeywordConstant", "constant.language"},
	{"KeywordDeclaration", "storage.type keyword.declaration keyword"},
	{"KeywordNamespace", "keyword.control.import"},
	{"KeywordPseudo", "keyword.other"},
	{"KeywordReserved", "keyword.other"},
	{"KeywordType", "storage.type support.type"},
	{"Name", ""},
	{"NameAttribute", "entity.other.attribute-name"},
	{"NameClass", "entity.name.type.class entity.name.class"},
	{"NameConstant", "constant.other"},
	{"NameDecorator", "entity.name.function.decorator meta.annotation"},
	{"NameEntity", "constant.character.entity"},
	{"NameException", "support.class.exception entity.name.exception"},
	{"NameKeyword", "keyword.other"},
	{"NameLabel", "entity.name.label constant.other"},
	{"NameNamespace", "entity.name.namespace"},
	{"NameOperator", "keyword.operator"},
	{"NameOther", ""},
	{"NamePseudo", "variable.language"},
	{"NameProperty", "support.type.property-name variable.other.property"},
	{"NameTag", "entity.name.tag"},
	{"NameBuiltin", "support.function.builtin"},
	{"NameBuiltinPseudo", "variable.language"},
	{"NameVariable", "variable.other"},
	{"NameVariableAnonymous", "variable.other"},
	{"NameVariableClass", "variable.other.member"},
	{"NameVariableGlobal", "variable.other.global"},
	{"NameVariableInstance", "variable.other.member"},
	{"NameVariableMagic", "variable.language"},
	{"NameFunction", "entity.name.function"},
	{"NameFunctionMagic", "support.function.magic entity.name.function"},
	{"Literal", "constant.other"},
	{"LiteralDate", "constant.other.date"},
	{"LiteralOther", "constant.other"},
	{"LiteralString", "string.quoted"},
	{"LiteralStringAffix", "storage.type.string"},
	{"LiteralStringAtom", "constant.other.symbol"},
	{"LiteralStringBacktick", "string.quoted.other"},
	{"LiteralStringBoolean", "constant.language.boolean"},
	{"LiteralStringChar", "constant.character string.quoted.single"},
	{"LiteralStringDelimiter", "punctuation.definition.string string.quoted"},
	{"LiteralStringDoc", "comment.block.documentation"},
	{"LiteralStringDouble", "string.quoted.double"},
	{"LiteralStringEscape", "constant.character.escape"},
	{"LiteralStringHeredoc", "string.unquoted.heredoc"},
	{"LiteralStringInterpol", "punctuation.section.interpolation constant.other.placeholder"},
	{"LiteralStringName", "string.quoted.other"},
	{"LiteralStringOther", "string.quoted.other"},
	{"LiteralStringRegex", "string.regexp"},
	{"LiteralStringSingle", "string.quoted.single"},
	{"LiteralStringSymbol", "constant.other.symbol"},
	{"LiteralNumber", "constant.numeric"},
	{"LiteralNumberBin", "constant.numeric.integer.binary"},
	{"LiteralNumberFloat", "constant.numeric.float"},
	{"LiteralNumberHex", "constant.numeric.integer.hexadecimal"},
	{"LiteralNumberInteger", "constant.numeric.integer"},
	{"LiteralNumberIntegerLong", "constant.numeric.integer"},
	{"LiteralNumberOct", "constant.numeric.integer.octal"},
	{"LiteralNumberByte", "constant.numeric.integer"},
	{"Operator", "keyword.operator"},
	{"OperatorWord", "keyword.operator.word"},
	{"OperatorReserved", "keyword.operator"},
	{"Punctuation", "punctuation"},
	{"Comment", "comment"},
	{"CommentHashbang", "comment.line.shebang"},
	{"CommentMultiline", "comment.block"},
	{"CommentSingle", "comment.line"},
	{"CommentSpecial", "comment.block.documentation"},
	{"CommentPreproc", "meta.preprocessor comment"},
	{"CommentPreprocFile", "meta.preprocessor.include string"},
	{"Generic", ""},
	{"GenericDeleted", "markup.deleted"},
	{"GenericEmph", "markup.italic"},
	{"GenericError", "invalid.illegal"},
	{"GenericHeading", "markup.heading meta.diff.header"},
	{"GenericInserted", "markup.inserted"},
	{"GenericOutput", ""},
	{"GenericPrompt", "punctuation.definition.prompt keyword.operator"},
	{"GenericStrong", "markup.bold"},
	{"GenericSubheading", "markup.heading.2 meta.diff.range"},
	{"GenericTraceback", "invalid.illegal"},
	{"GenericUnderline", "markup.underline"},
}

// The kinds that the engine itself gives to text.
const (
	kindText  Kind = 0
	kindError Kind = 4
)

// String returns the name of the kind, as in LiteralStringDouble.
func (k Kind) String() string { return kinds[k].name }

// Scopes returns the names of the scopes that tokens of the kind belong to in a TextMate
// theme, separated by spaces. A theme that does not know the first one may know the next. For
// plain text there is none.
func (k Kind) Scopes() string { return kinds[k].scopes }

// kindOf returns the kind with a name.
func kindOf(name string) (Kind, bool) {
	for i := range kinds {
		if kinds[i].name == name {
			return Kind(i), true
		}
	}
	return 0, false
}
