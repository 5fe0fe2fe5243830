# Completion of bolide(8) for bash. Made from src/cli/table.rs.
# shellcheck disable=SC2207

_bolide() {
    local current=$2 previous=$3 command= word
    COMPREPLY=()
    case $previous in
@VALUES@    esac
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $command in
            '') [[ ' @FIRST@ ' = *" $word "* ]] && command=$word ;;
@PAIRS@        esac
    done
    case $command in
        '') COMPREPLY=($(compgen -W '@FIRST@ @OPTIONS@' -- "$current")) ;;
@COMMANDS@    esac
}

complete -o filenames -F _bolide bolide
