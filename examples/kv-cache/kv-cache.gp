# kv-cache.gp: kv-cache.svg and kv-cache.png from a table of nl-bench. draw.sh sets the variables.
set datafile separator tab
kind(name) = sprintf("< awk -F '\\t' '$1 == \"%s\"' '%s'", name, data)
stats kind("cached") using 2:6 name "cached" nooutput
stats kind("naive") using 2:6 name "naive" nooutput
stats kind("cached-total") using 6 name "cached_total" nooutput
stats kind("naive-total") using 6 name "naive_total" nooutput

title = sprintf("%s: %d ids after a prompt of %s", model, int(cached_max_x), prompt)
setting = sprintf("%s, %s, %s threads; %s weights, float32 activations; median of %s runs, band: fastest to slowest", \
                  machine, isa, threads, weights, repeat)

do for [device in "svg png"] {
    if (device eq "svg") {
        set terminal svg noenhanced size 1080,500 font "DejaVu Sans,13" background rgb "white"
    } else {
        set terminal pngcairo noenhanced size 1620,750 font "DejaVu Sans,19" linewidth 1.5
    }
    set output "kv-cache." . device
    set multiplot
    set label 1 title at screen 0.5, 0.965 center
    set label 2 setting at screen 0.5, 0.91 center font ",10"
    set label 3 "$ " . command at screen 0.5, 0.03 center font "DejaVu Sans Mono,10"

    # Latency of each step.
    set size 0.68, 0.85
    set origin 0, 0.05
    set xlabel "step (id generated)"
    set ylabel "latency of the step, milliseconds"
    set xrange [1:cached_max_x]
    set yrange [0:*]
    set key top left reverse Left samplen 2
    set grid ytics linecolor rgb "#dddddd"
    plot kind("naive") using 2:5:7 with filledcurves fillcolor rgb "#f3c6ae" notitle, \
         kind("naive") using 2:6 with lines linewidth 2 linecolor rgb "#c8451b" title "naive: the whole sequence again", \
         kind("cached") using 2:5:7 with filledcurves fillcolor rgb "#b3d1ea" notitle, \
         kind("cached") using 2:6 with lines linewidth 2 linecolor rgb "#1f6fb2" \
            title "cached: the prompt in the first step, then one id"
    unset label 1
    unset label 2
    unset label 3

    # All steps together.
    set size 0.32, 0.85
    set origin 0.68, 0.05
    unset xlabel
    set ylabel sprintf("all %d ids, seconds", int(cached_max_x))
    set xrange [-0.6:1.6]
    set yrange [0:naive_total_max * 1.15 / 1000]
    set xtics ("naive" 0, "cached" 1) scale 0
    set boxwidth 0.6
    unset key
    plot "+" using (0):(naive_total_median / 1000) every ::0::0 with boxes fillstyle solid linecolor rgb "#c8451b", \
         "+" using (1):(cached_total_median / 1000) every ::0::0 with boxes fillstyle solid linecolor rgb "#1f6fb2", \
         "+" using (0):(naive_total_median / 1000):(sprintf("%.2f s", naive_total_median / 1000)) every ::0::0 \
            with labels offset 0, 0.8, \
         "+" using (1):(cached_total_median / 1000):(sprintf("%.2f s", cached_total_median / 1000)) every ::0::0 \
            with labels offset 0, 0.8
    set xtics autofreq scale 1
    set key
    unset multiplot
    set output
}
