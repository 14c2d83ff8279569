build-address-undefined/obj/kernels/base.o: kernels/base.c kernels/base.h
kernels/base.h:
