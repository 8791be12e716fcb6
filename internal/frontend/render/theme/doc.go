// Package theme reads TextMate themes and returns the colors of text in a terminal.
//
// Terms. A theme is a property list (.tmTheme) of settings. A scope is what a piece of
// text is, from the general to the particular: keyword.control.import. A selector says
// which scopes a setting is for: keyword.control matches the scope above, and so does
// source keyword, if that is within source. The setting with the most particular selector
// wins; of two that are equal, the later one. A style is what results for a scope.
//
// Colors with an alpha channel are blended over the background of the theme. Nothing is
// drawn with a background: the terminal has its own.
//
// Sources: "Language Grammars" and "Scope Selectors" of the TextMate 1.x manual; Property
// List 1.0 DTD.
package theme
