/** The filter of a list: an id prefix, or an RQL `where` condition with completion of fields. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../../components/icon.tsx";
import { complete } from "../query/query-completion.ts";
import { quoted } from "./list-rows.ts";

interface Properties {
  readonly base: string;
  readonly collection: string | undefined;
  readonly where: string;
  /** Example from the data. */
  readonly example: string;
  apply(where: string): void;
}

interface Offer {
  readonly label: string;
  readonly detail?: string;
}

const offersMax = 8;
const waitMs = 120;
const wordAtEnd = /[\w@$.]*$/;

export function Filter({ base, collection, where, example, apply }: Properties) {
  const [text, setText] = useState(where);
  const [chosen, setChosen] = useState(-1);
  const { offers, ask, drop } = useOffers(base, collection);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(where), [where]);
  const typed = (now: string) => {
    setText(now);
    setChosen(-1);
    ask(now);
  };
  const take = ({ label }: Offer) => {
    const word = wordAtEnd.exec(text)?.[0] ?? "";
    const kept = text.length - word.length + word.lastIndexOf(".") + 1;
    setText(text.slice(0, kept) + label);
    drop();
    setChosen(-1);
    input.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const offer = offers[chosen];
    if (event.key === "ArrowDown" && offers.length > 0) setChosen((chosen + 1) % offers.length);
    else if (event.key === "ArrowUp" && offers.length > 0)
      setChosen(chosen <= 0 ? offers.length - 1 : chosen - 1);
    else if (event.key === "Tab" && offers.length > 0 && !event.shiftKey)
      take(offer ?? (offers[0] as Offer));
    else if (event.key === "Escape" && offers.length > 0) drop();
    else if (event.key === "Escape" && text !== where) setText(where);
    else if (event.key === "Enter" && offer !== undefined) take(offer);
    else if (event.key === "Enter") {
      drop();
      // The latest input may not be rendered yet.
      apply((input.current?.value ?? text).trim());
    } else return;
    event.preventDefault();
  };
  return (
    <div class="filtering grow">
      <div class="field calm">
        <Icon name="find" />
        <input
          ref={input}
          id="filter"
          type="text"
          class="mono"
          aria-label="Filter"
          role="combobox"
          aria-expanded={offers.length > 0}
          aria-controls="filter-offers"
          aria-autocomplete="list"
          aria-activedescendant={chosen < 0 ? undefined : `filter-offer-${chosen}`}
          autocomplete="off"
          spellcheck={false}
          placeholder={example}
          value={text}
          onInput={(event) => typed(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          onBlur={() => drop()}
        />
        {where !== "" && (
          <button
            type="button"
            class="btn quiet icon small"
            aria-label="No filter"
            onClick={() => apply("")}
          >
            <Icon name="x" />
          </button>
        )}
      </div>
      <Offers offers={offers} chosen={chosen} take={take} />
    </div>
  );
}

/** Returns completions after a short pause in typing. */
function useOffers(base: string, collection: string | undefined) {
  const [offers, setOffers] = useState<readonly Offer[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const find = async (typed: string) => {
    const word = wordAtEnd.exec(typed)?.[0] ?? "";
    const last = word.slice(word.lastIndexOf(".") + 1).toLowerCase();
    if (word === "" || collection === undefined || isInText(typed)) return setOffers([]);
    const before = `from ${quoted(collection)} where ${typed.slice(0, typed.length - word.length)}`;
    const found = await complete(base, word, before).catch(() => []);
    setOffers(
      found
        .filter(({ label }) => label.toLowerCase().startsWith(last) && label !== word)
        .slice(0, offersMax),
    );
  };
  const drop = () => {
    clearTimeout(timer.current);
    setOffers([]);
  };
  const ask = (typed: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void find(typed), waitMs);
  };
  return { offers, ask, drop };
}

interface OffersProperties {
  offers: readonly Offer[];
  chosen: number;
  take: (offer: Offer) => void;
}

function Offers({ offers, chosen, take }: OffersProperties) {
  return (
    <div
      id="filter-offers"
      class="offers"
      role="listbox"
      aria-label="Completions"
      hidden={offers.length === 0}
    >
      {offers.map((offer, n) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the input
        <div
          key={offer.label}
          id={`filter-offer-${n}`}
          role="option"
          tabIndex={-1}
          aria-selected={n === chosen}
          // Keep the focus in the input.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => take(offer)}
        >
          <span class="mono">{offer.label}</span>
          <small class="muted">{offer.detail}</small>
        </div>
      ))}
    </div>
  );
}

/** Returns true if the end of the text is inside quotes. */
function isInText(text: string): boolean {
  return (text.match(/'/g)?.length ?? 0) % 2 === 1;
}
