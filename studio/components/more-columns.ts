/**
 * Marks scrolled containers whose content continues to the right with `data-more`; the style sheet fades their edge.
 * Sizes of tables change with their data, so they are observed.
 */
import { useLayoutEffect } from "preact/hooks";

export function useMoreColumns(content: { readonly current: HTMLElement | null }): void {
  useLayoutEffect(() => {
    const scroller = content.current?.closest<HTMLElement>(".scroll, .vtable");
    if (content.current === null || !scroller) return undefined;
    const mark = () => {
      const { scrollLeft, clientWidth, scrollWidth } = scroller;
      scroller.toggleAttribute("data-more", scrollLeft + clientWidth < scrollWidth - 1);
    };
    mark();
    const observer = new ResizeObserver(mark);
    observer.observe(content.current);
    observer.observe(scroller);
    scroller.addEventListener("scroll", mark, { passive: true });
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", mark);
      scroller.removeAttribute("data-more");
    };
  }, []);
}
