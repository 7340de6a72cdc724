# fish completion of carrel
function __carrel_complete
	set -l words (commandline -opc)
	set -l word (commandline -ct)
	for line in ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
		switch $line
			case ':files'
				__fish_complete_path "$word"
			case ':dirs'
				__fish_complete_directories "$word"
			case '*'
				string replace -r '(\t.*)\t.*' '$1' -- $line
		end
	end
end
complete -c carrel -f -k -a '(__carrel_complete)'
